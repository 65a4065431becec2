// A fixed set of workers that run one job together, each on its own static share.
//
// The calling thread is worker 0, so a pool of one starts no thread. Workers poll for some tens of
// microseconds between jobs and at barriers and then sleep: a step's kernels follow each other
// within microseconds, an idle program uses no processor, and where neighbours have driven two
// workers onto one core neither polls away the time that the other needs. One thread drives a pool;
// `run` is not reentrant.
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

  // Inside a job of `run`, on every worker of the pool: returns when all workers have called it.
  // What a worker wrote before it, all may read after it. A job has as many barriers as it likes;
  // a job in which one worker calls fewer than another does not end.
  void barrier();

  // Splits [0, count) into one contiguous share per worker, each a multiple of `grain` long but
  // for the last, and calls body(begin, end) on each share that is not empty.
  void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

 private:
  // What different threads write, or some await while others write, lies in different cache lines.
  static constexpr size_t kCacheLine = 64;

  // A number that goes up by one and can be waited for.
  struct alignas(kCacheLine) Counter {
    std::atomic<uint32_t> value = 0;
    std::atomic<uint32_t> sleepers = 0;  // who must be woken
    void advance();
    void sleep_while(uint32_t old);
  };
  struct alignas(kCacheLine) Place {
    std::atomic<int> processor = -1;  // where the worker last began a job
  };

  void work(int worker);
  void stop();
  void wait_for_change(Counter& counter, uint32_t old);
  bool poll_for_change(const Counter& counter, uint32_t old) const;
  bool shares_processor() const;

  Counter jobs_;                                      // given out; workers wait for the next
  Counter finished_;                                  // jobs; the driver waits for its own
  Counter barriers_;                                  // that all workers have reached
  alignas(kCacheLine) std::atomic<int> running_ = 0;  // workers that are still at the current job
  alignas(kCacheLine) std::atomic<int> arrived_ = 0;  // at the current barrier
  alignas(kCacheLine) const FunctionRef<void(int)>* job_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::vector<Place> places_;
  std::vector<std::jthread> threads_;  // last: they join before what they use goes
};

// The processors that this process may use: its affinity mask, cut to its cgroups' quotas.
int usable_processors();

}  // namespace banyan
