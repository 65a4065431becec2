// The few threads on which programs run: closures on the threads' own stacks, bodies on fibers.
//
// A worker runs what is posted to it in order. A fiber stays on its worker. Signal is a condition
// variable for both: a fiber that waits is suspended, a thread sleeps.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/task_thread.h"
#include "program/fiber.h"

namespace banyan {

class Worker {
 public:
  using Task = TaskThread::Task;

  explicit Worker(size_t stack_bytes);
  // All fibers must have ended, once what was posted is done.
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Task task) { thread_.post(std::move(task)); }
  // Runs `body` on a fiber; `body` must not throw. `failed` is called instead when memory runs out.
  void start(std::move_only_function<void()> body, std::function<void()> failed);

 private:
  friend class Signal;

  void resume(Fiber* fiber);

  StackPool stacks_;   // of the thread
  TaskThread thread_;  // last: it uses the stacks
};

class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Lets go of `lock` until notify_all() is called under the same mutex. Does not return without.
  void wait(std::unique_lock<std::mutex>& lock);
  void notify_all();

 private:
  struct Waiter;
  std::vector<Waiter*> waiters_;
};

}  // namespace banyan
