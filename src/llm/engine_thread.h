// The one thread that owns an Engine and calls step() in a loop. Requests are submitted from any
// thread.
//
// Two threads matter. The *engine thread* is internal and sleeps while there is nothing to compute.
// The *delivery thread* belongs to the caller: `post` runs closures there, in order, and all
// callbacks of a submission run on it. The events of one step are posted as one batch, so that
// switching threads costs once per step, not once per token.
//
// Both directions are bounded. submit() refuses when too many commands are waiting; the engine
// thread waits when the delivery thread is too many steps behind. The engine must outlive the
// EngineThread. Until then other threads may only use its immutable info().
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

// The result of one iteration of the engine thread; reported after its events.
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

// Requests submitted together: the samples of one prompt, or the prompts of one list. The sinks are
// released once all requests have ended.
class Submission {
 public:
  Submission(size_t count, SubmissionSinks sinks)
      : abandoned_(count), sinks_(std::move(sinks)), unfinished_(count) {}

  size_t size() const { return abandoned_.size(); }

 private:
  friend class EngineThread;

  std::vector<std::atomic<bool>> abandoned_;  // by index: no further events wanted
  // Used by the delivery thread:
  SubmissionSinks sinks_;
  size_t unfinished_;
  // Used by the engine thread:
  std::vector<SequenceId> sequences_;
};

class EngineThread {
 public:
  struct Options {
    size_t submissions_waiting_max = 1024;  // not yet seen by the engine thread
    int steps_behind_max = 64;              // lag of the delivery thread
    // Runs a closure on the delivery thread, in order. Called from any thread; must not run the
    // closure before it returns.
    std::function<void(std::move_only_function<void()>)> post;
    std::function<void(const StepReport&)> on_step;  // on the delivery thread; may be empty
  };

  // Starts the thread.
  EngineThread(Engine& engine, Options options);
  // Calls stop().
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Submits all of `requests` (at least one) or none. The engine's errors arrive through the sinks.
  // Returns kExhausted when too many submissions are waiting, or after stop(). Safe from any
  // thread.
  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks);

  // Ends the requests that are still running; each gets an event with kCancelled. Safe from any
  // thread.
  void cancel(const std::shared_ptr<Submission>& submission);
  void cancel_all();
  // Like cancel(). When called on the delivery thread, the requests (or the one at `index`) get no
  // further events.
  void abandon(const std::shared_ptr<Submission>& submission,
               std::optional<size_t> index = std::nullopt);

  // Runs `task` on the engine thread between two steps, then `done` on the delivery thread. After
  // stop() neither runs.
  void run(std::function<void(Engine&)> task, std::function<void()> done = {});

  // Cancels running requests, which get their last event, and ends the thread after its current
  // step. The delivery thread must keep running until this returns, or be the caller.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
