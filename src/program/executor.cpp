#include "program/executor.h"

#include <semaphore>
#include <utility>

#include "base/check.h"

namespace banyan {
namespace {

thread_local Worker* current_worker = nullptr;

// Not inlined, for the same reason as Fiber::current().
[[gnu::noinline]] Worker* worker_here() {
  return current_worker;
}

}  // namespace

Worker::Worker(size_t stack_bytes) : stacks_(stack_bytes) {
  post([this] { current_worker = this; });
}

void Worker::start(std::move_only_function<void()> body, std::function<void()> failed) {
  post([this, body = std::move(body), failed = std::move(failed)]() mutable {
    Fiber* fiber = nullptr;
    try {
      fiber = new Fiber(stacks_, std::move(body));
    } catch (const std::bad_alloc&) {
      failed();
      return;
    }
    resume(fiber);
  });
}

void Worker::resume(Fiber* fiber) {
  fiber->resume();
  if (fiber->ended()) delete fiber;
}

// Lives on the waiting fiber's or thread's stack.
struct Signal::Waiter {
  Fiber* fiber = nullptr;
  Worker* worker = nullptr;
  std::binary_semaphore woken{0};  // for a thread
};

void Signal::wait(std::unique_lock<std::mutex>& lock) {
  Waiter waiter;
  waiter.fiber = Fiber::current();
  waiter.worker = worker_here();
  CHECK(waiter.fiber != nullptr || waiter.worker == nullptr,
        "a worker's own stack must not wait for programs");
  waiters_.push_back(&waiter);
  lock.unlock();
  if (waiter.fiber != nullptr) {
    // Waking posts to this worker, which is busy until the fiber is suspended.
    waiter.fiber->suspend();
  } else {
    waiter.woken.acquire();
  }
  lock.lock();
}

void Signal::notify_all() {
  for (Waiter* waiter : std::exchange(waiters_, {})) {
    if (waiter->fiber == nullptr) {
      waiter->woken.release();
    } else {
      waiter->worker->post(
          [worker = waiter->worker, fiber = waiter->fiber] { worker->resume(fiber); });
    }
  }
}

}  // namespace banyan
