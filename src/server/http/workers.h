// Threads for work that would hold up the I/O thread: parsing, templates, tokenizing, and others
// for compiling grammars. Clients have turns (server/http/fair_queue.h).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http/fair_queue.h"

namespace banyan {

class Workers {
 public:
  struct Options {
    int threads = 1;
    int queued_max = 1;  // of one client
    int niceness = 0;    // as nice(1) has it: 10 gets a tenth of a processor that others want too
  };

  explicit Workers(const Options& options);
  // Ends after the work that has begun; the rest is dropped.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False when the queue is full. `work` must not throw. From any thread. `cost` orders what one
  // client has waiting.
  bool enqueue(const std::string& client, std::move_only_function<void()> work, size_t cost = 0);
  // What has not begun.
  size_t waiting() const;

 private:
  void loop(int niceness);

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  FairQueue<std::move_only_function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: they use the above
};

}  // namespace banyan
