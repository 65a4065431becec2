// A fixed set of workers that run one job together, each on its own static share.
//
// The calling thread is worker 0, so a pool of one starts no thread. Workers poll for some tens of
// microseconds between jobs and at barriers, then sleep. Kernels of a step follow each other within
// microseconds, so polling keeps them fast. Sleeping leaves an idle program without load, and frees
// the core if other load has put two workers on it. One thread drives a pool; `run` is not
// reentrant.
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

  // How many workers take part in jobs.
  int size() const { return active_; }
  // All that were started.
  int workers() const { return static_cast<int>(threads_.size()) + 1; }
  // From now on the first `workers` of them do, and the others sleep. Takes about as long as waking
  // them.
  void use(int workers);

  // Calls job(worker) once on every worker and returns when all are done.
  void run(FunctionRef<void(int worker)> job);

  // Call inside a job of `run`, on every worker: returns once all workers have called it. Writes
  // before the barrier are visible to all workers after it. Every worker must pass the same number
  // of barriers, or the job never ends.
  void barrier();

  // Splits [0, count) into one contiguous share per worker, each a multiple of `grain` except the
  // last, and calls body(begin, end) for each share that is not empty.
  void parallel_for(int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

 private:
  // Separates data written by different threads, or polled by others, to avoid false sharing.
  static constexpr size_t kCacheLine = 64;

  // A counter that threads can wait on.
  struct alignas(kCacheLine) Counter {
    std::atomic<uint32_t> value = 0;
    std::atomic<uint32_t> sleepers = 0;  // number of threads to wake
    void advance();
    void sleep_while(uint32_t old);
  };
  struct alignas(kCacheLine) Place {
    std::atomic<int> processor = -1;  // where the worker started its last job
  };

  void work(int worker);
  bool take_part(int worker, uint32_t& jobs_seen);
  void hand_out(FunctionRef<void(int worker)> job, int workers);
  void finish();
  void stop();
  void wait_for_change(Counter& counter, uint32_t old);
  bool poll_for_change(const Counter& counter, uint32_t old) const;
  bool shares_processor() const;

  Counter jobs_;                                      // jobs handed out; workers wait on it
  Counter finished_;                                  // jobs completed; the driver waits on it
  Counter barriers_;                                  // barriers that all workers have reached
  Counter uses_;                                      // calls of use(); workers that sleep wait
  std::atomic<int> active_;                           // workers that take part
  alignas(kCacheLine) std::atomic<int> running_ = 0;  // workers still running the current job
  alignas(kCacheLine) std::atomic<int> arrived_ = 0;  // workers at the current barrier
  alignas(kCacheLine) const FunctionRef<void(int)>* job_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::vector<Place> places_;
  std::vector<std::jthread> threads_;  // last: joined before the members they use are destroyed
};

// The number of processors that this process may use: its affinity mask, capped by its cgroups'
// quotas.
int usable_processors();

}  // namespace banyan
