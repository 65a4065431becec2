// The interface that runs requests given as tokens: the engine of this process
// (llm/engine_thread.h), or workers elsewhere (server/route/remote_generator.h). Layers above do
// not depend on which.
//
// All callbacks of a submission run on one *delivery thread*, the caller's.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/engine.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// What has happened since the last report, for metrics; reported after its events.
struct StepReport {
  EngineStats stats;  // after the step
  bool stepped = false;
  double step_s = 0;
};

// The callbacks of a submission, on the delivery thread. They may submit and cancel.
struct SubmissionSinks {
  // An event of request `index`, as the engine delivers it; spans are valid during the call. The
  // last event of each index has finish != kNone.
  std::function<void(size_t index, const TokenEvent& event)> event;
  // A request was rejected, so none of the submission runs. Replaces all events.
  std::function<void(const Error& error)> rejected;
};

// Names a run, so that a client that lost its router can have it continued by another
// (server/stream_marks.h).
struct RunName {
  std::string name;   // at the worker; empty: nobody will ask for it
  std::string place;  // the worker that has begun it, by Submission::place(); empty: unknown
};

// Requests submitted together: the samples of one prompt, or the prompts of one list. The sinks are
// released once all requests have ended.
class Submission {
 public:
  Submission(size_t count, SubmissionSinks sinks)
      : abandoned_(count), sinks_(std::move(sinks)), unfinished_(count) {}
  virtual ~Submission() = default;
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;

  size_t size() const { return abandoned_.size(); }
  // The worker that runs the request at `index`; empty: none, or this process.
  virtual std::string_view place(size_t /*index*/) const { return {}; }

  // For generators. These two on the delivery thread; without effect once all have ended.
  void deliver(size_t index, const TokenEvent& event);
  void reject(const Error& error);
  // No further events of the request at `index`, or of any. Safe from any thread.
  void abandon(std::optional<size_t> index);

 private:
  std::vector<std::atomic<bool>> abandoned_;  // by index: no further events wanted
  // Used by the delivery thread:
  SubmissionSinks sinks_;
  size_t unfinished_;
};

// A figure of a generator for /metrics.
struct GeneratorFigure {
  std::string_view name, help;
  bool total = false;  // it only grows
  double value = 0;
  std::string_view label = {};  // empty: none
  std::string label_value = {};
};

class Generator {
 public:
  virtual ~Generator() = default;

  // Submits all of `requests` (at least one) or none. Errors of a request arrive through the sinks,
  // never from within this call. kExhausted when too many submissions are waiting, or after stop().
  // `names`: one for each request, or none.
  virtual Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                                     SubmissionSinks sinks,
                                                     std::vector<RunName> names = {}) = 0;
  // Ends the requests that are still running; each gets an event with kCancelled.
  virtual void cancel(const std::shared_ptr<Submission>& submission) = 0;
  virtual void cancel_all() = 0;
  // Like cancel(). When called on the delivery thread, the requests (or the one at `index`) get no
  // further events.
  virtual void abandon(const std::shared_ptr<Submission>& submission,
                       std::optional<size_t> index = std::nullopt) = 0;
  // Whether requests can run now; an error says what is missing.
  virtual Status ready() const { return {}; }
  // Its own counters, in addition to the engine's; those with the same name are adjacent.
  virtual std::vector<GeneratorFigure> figures() const { return {}; }
  // Cancels running requests, which get their last event, and ends.
  virtual void stop() = 0;
};

}  // namespace banyan
