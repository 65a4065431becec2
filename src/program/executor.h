// The threads that run programs: closures run on the thread's own stack, bodies on fibers.
//
// A worker runs posted closures in order. A fiber stays on its worker. Signal is a condition
// variable for both: a waiting fiber is suspended, a waiting thread sleeps.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/threads/task_thread.h"
#include "program/fiber.h"

namespace banyan {

class Worker {
 public:
  using Task = TaskThread::Task;

  explicit Worker(size_t stack_bytes);
  // All fibers must have ended once the posted closures have run.
  ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void post(Task task) { thread_.post(std::move(task)); }
  // Runs `body`, which must not throw, on a fiber. Calls `failed` instead if out of memory.
  void start(std::move_only_function<void()> body, std::function<void()> failed);

 private:
  friend class Signal;

  void resume(Fiber* fiber);

  StackPool stacks_;   // used by the thread
  TaskThread thread_;  // last, because it uses the stacks
};

class Signal {
 public:
  Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  // Releases `lock` until notify_all() is called under the same mutex. No spurious wakeups.
  void wait(std::unique_lock<std::mutex>& lock);
  void notify_all();

 private:
  struct Waiter;
  std::vector<Waiter*> waiters_;
};

}  // namespace banyan
