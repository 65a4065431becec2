#include "server/http/workers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

Workers::Workers(const Options& options) : queue_(as_size(options.queued_max)) {
  CHECK(options.threads > 0 && options.queued_max > 0, "{} threads, {} queued", options.threads,
        options.queued_max);
  try {
    for (int i = 0; i < options.threads; ++i) {
      threads_.emplace_back([this, niceness = options.niceness] { loop(niceness); });
    }
  } catch (...) {  // out of threads: join those that started, then report
    stop();
    throw;
  }
}

Workers::~Workers() {
  stop();
}

void Workers::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  threads_.clear();  // joins
}

bool Workers::enqueue(const std::string& client, std::move_only_function<void()> work,
                      size_t cost) {
  {
    std::lock_guard lock(mutex_);
    if (!queue_.push(client, cost, std::move(work))) return false;
  }
  wake_.notify_one();
  return true;
}

size_t Workers::waiting() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

void Workers::loop(int niceness) {
  // On Linux each thread has its own niceness. Failing to set it is not an error.
  if (niceness != 0) (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    auto work = *queue_.pop();
    lock.unlock();
    work();
    work = nullptr;  // destroy its captures before taking the lock
    lock.lock();
  }
}

}  // namespace banyan
