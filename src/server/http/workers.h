// A thread pool for work that would block the I/O thread: parsing, templates and tokenizing; a
// second pool compiles grammars. Clients take turns (server/http/fair_queue.h).
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
    int queued_max = 1;  // per client
    int niceness = 0;    // as in nice(1): at 10 it gets about a tenth of a contended processor
  };

  explicit Workers(const Options& options);
  // Waits for the running work; queued work is dropped.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Queues `work`, which must not throw. Safe from any thread. False when the queue is full. `cost`
  // orders the items of one client.
  bool enqueue(const std::string& client, std::move_only_function<void()> work, size_t cost = 0);
  // The number of queued items.
  size_t waiting() const;

 private:
  void loop(int niceness);
  void stop();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  FairQueue<std::move_only_function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last, because they use the members above
};

}  // namespace banyan
