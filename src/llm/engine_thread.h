// The one thread that owns an Engine and calls step() in a loop, with submission from any thread.
//
// Two threads matter. The *engine thread* is inside; it sleeps while there is nothing to compute.
// The *delivery thread* is the caller's: `post` runs closures there, in order. All callbacks of a
// submission run on it. The events of one step cross as one batch, so that changing threads costs
// once per step and not once per token.
//
// Both directions are bounded: submit() refuses when too many commands wait, and the engine thread
// waits when the delivery thread lags by too many steps. The engine must outlive its thread;
// nothing else may touch it meanwhile but the immutable info().
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "banyan/engine.h"
#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

// What one round of the engine thread did; reported after the events of that round.
struct StepReport {
  EngineStats stats;  // after the step
  bool stepped = false;
  double step_s = 0;
};

// A submission's callbacks, on the delivery thread. They may submit and cancel.
struct SubmissionSinks {
  // An event of the submission's request `index`, as the engine's own sinks get it; spans are valid
  // during the call. The last one of each index has finish != kNone.
  std::function<void(size_t index, const TokenEvent& event)> event;
  // One of the requests was refused, and none of them runs. Comes instead of any event.
  std::function<void(const Error& error)> rejected;
};

// Requests that came together: the samples of one prompt, the prompts of one list. The sinks are
// let go once all have ended.
class Submission {
 public:
  Submission(size_t count, SubmissionSinks sinks)
      : abandoned_(count), sinks_(std::move(sinks)), unfinished_(count) {}

  size_t size() const { return abandoned_.size(); }

 private:
  friend class EngineThread;

  std::vector<std::atomic<bool>> abandoned_;  // by index: its caller wants to hear no more
  // Of the delivery thread:
  SubmissionSinks sinks_;
  size_t unfinished_;
  // Of the engine thread:
  std::vector<SequenceId> sequences_;
};

class EngineThread {
 public:
  struct Options {
    size_t submissions_waiting_max = 1024;  // for the engine thread to see them
    int steps_behind_max = 64;              // that the delivery thread may be
    // Runs a closure on the delivery thread, in order; called from any thread, and must not run the
    // closure before it returns.
    std::function<void(std::move_only_function<void()>)> post;
    std::function<void(const StepReport&)> on_step;  // on the delivery thread; may be empty
  };

  // Starts the thread.
  EngineThread(Engine& engine, Options options);
  // stop()
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Submits all of `requests` (at least one) or none; what the engine says to them comes through
  // the sinks. kExhausted here when too many submissions wait, or after stop(). From any thread.
  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks);

  // Ends the requests that still run: each gets an event with kCancelled. From any thread.
  void cancel(const std::shared_ptr<Submission>& submission);
  void cancel_all();
  // The same, but when this is called on the delivery thread, the requests (or the one) get no
  // further event.
  void abandon(const std::shared_ptr<Submission>& submission,
               std::optional<size_t> index = std::nullopt);

  // Runs `task` on the engine thread between two steps, then `done` on the delivery thread. After
  // stop() neither runs.
  void run(std::function<void(Engine&)> task, std::function<void()> done = {});

  // Cancels running requests, which get their last event, and ends the thread after its current
  // step. The delivery thread must keep running until this returns, or be the one that calls it.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
