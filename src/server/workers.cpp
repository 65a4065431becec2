#include "server/workers.h"

#include <utility>

namespace banyan {

Workers::Workers(int threads, int queued_max) : queued_max_(static_cast<size_t>(queued_max)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  threads_.clear();  // joins
}

bool Workers::enqueue(std::move_only_function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (queue_.size() >= queued_max_) return false;
    queue_.push_back(std::move(work));
  }
  wake_.notify_one();
  return true;
}

void Workers::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    auto work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it holds goes before the lock is taken
    lock.lock();
  }
}

}  // namespace banyan
