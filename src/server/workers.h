// Threads for work that would hold up the I/O thread: parsing, templates, tokenizing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace banyan {

class Workers {
 public:
  Workers(int threads, int queued_max);
  // Ends after the work that has begun; the rest is dropped.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False when the queue is full. `work` must not throw. From any thread.
  bool enqueue(std::move_only_function<void()> work);

 private:
  void loop();

  const size_t queued_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::move_only_function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: they use the above
};

}  // namespace banyan
