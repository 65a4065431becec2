// The one thread that owns an Engine and calls step() in a loop. Requests are submitted from any
// thread.
//
// Two threads matter. The *engine thread* is internal and sleeps while there is nothing to compute.
// The *delivery thread* belongs to the caller: `post` runs closures there, in order, and all
// callbacks of a submission run on it. The events of one step are posted as one batch, so that
// switching threads costs once per step, not once per token.
//
// Both directions are bounded. submit() refuses when too many commands are waiting, though a client
// (GenerationOptions::client) keeps its share (base/fair_shares.h) of that queue, too; the engine
// thread waits when the delivery thread is too many steps behind. The engine must outlive the
// EngineThread. Until then other threads may only use its immutable info().
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "banyan/engine.h"
#include "banyan/request.h"
#include "banyan/status.h"
#include "llm/generator.h"

namespace banyan {

class EngineThread final : public Generator {
 public:
  struct Options {
    size_t submissions_waiting_max = 1024;  // not yet seen by the engine thread
    int steps_behind_max = 64;              // lag of the delivery thread
    // Seconds with work but without a step after which ready() is an error; 0: never.
    double watchdog_timeout_s = 300;
    std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
    // Runs a closure on the delivery thread, in order. Called from any thread; must not run the
    // closure before it returns.
    std::function<void(std::move_only_function<void()>)> post;
    std::function<void(const StepReport&)> on_step;  // on the delivery thread; may be empty
  };

  // Starts the thread.
  EngineThread(Engine& engine, Options options);
  // Calls stop().
  ~EngineThread() override;
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Submits all of `requests` (at least one) or none. The engine's errors arrive through the sinks.
  // Returns kExhausted when too many submissions are waiting, or after stop(). Safe from any
  // thread. `names` is ignored: a client that asks this process again finds its prefix cached.
  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks,
                                             std::vector<RunName> names = {}) override;

  // Ends the requests that are still running; each gets an event with kCancelled. Safe from any
  // thread.
  void cancel(const std::shared_ptr<Submission>& submission) override;
  void cancel_all() override;
  // Like cancel(). When called on the delivery thread, the requests (or the one at `index`) get no
  // further events.
  void abandon(const std::shared_ptr<Submission>& submission,
               std::optional<size_t> index = std::nullopt) override;

  // Runs `task` on the engine thread between two steps, then `done` on the delivery thread. After
  // stop() neither runs.
  void run(std::function<void(Engine&)> task, std::function<void()> done = {});

  // kExhausted once no step has ended for Options::watchdog_timeout_s although there is work, as if
  // a kernel or a store hangs. Safe from any thread.
  Status ready() const override;

  // Cancels running requests, which get their last event, and ends the thread after its current
  // step. The delivery thread must keep running until this returns, or be the caller.
  void stop() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace banyan
