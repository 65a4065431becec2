// A fixed set of workers that run one job together, each on its own static share.
//
// The calling thread is worker 0, so a pool of one starts no thread. Workers spin briefly between
// jobs and then sleep: a step's kernels follow each other within microseconds, an idle program
// uses no processor. One thread drives a pool; `run` is not reentrant.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace banyan {

class ThreadPool {
 public:
  // Starts `workers` - 1 threads; `workers` >= 1.
  explicit ThreadPool(int workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls job(worker) once on every worker and returns when all have returned.
  void run(FunctionRef<void(int worker)> job);

  // Splits [0, count) into one contiguous share per worker, each a multiple of `grain` long but
  // for the last, and calls body(begin, end) on each share that is not empty.
  void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

 private:
  void work(int worker);
  void stop();

  std::atomic<uint32_t> generation_ = 0;  // counts jobs; workers wait for it to move
  std::atomic<int> running_ = 0;          // workers that have not finished the current job
  std::atomic<bool> stopping_ = false;
  const FunctionRef<void(int)>* job_ = nullptr;
  std::vector<std::jthread> threads_;  // last: they join before what they look at goes
};

// The processors that this process may use: its affinity mask, cut to its cgroup's quota.
int usable_processors();

}  // namespace banyan
