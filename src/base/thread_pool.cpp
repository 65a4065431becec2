#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/check.h"

namespace banyan {
namespace {

// Some ten microseconds of polling: longer than the gap between two kernels of a step. After that a
// worker sleeps, because on a core that a neighbour also wants, a sleeper that is woken gets the
// core at once, while one that spins or yields waits for the neighbour's whole time slice.
constexpr int kSpins = 2048;

// Waits until `value` differs from `old`.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
  }
  value.wait(old, std::memory_order_acquire);
}

// The cgroup v2 quota in whole processors, rounded up; a large number where there is none.
int cgroup_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  int64_t allowed = std::atoll(quota.c_str());
  return std::max<int64_t>(1, (allowed + period - 1) / period);
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int affinity = 1;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) affinity = std::max(1, CPU_COUNT(&set));
  return std::min(affinity, cgroup_processors());
}

ThreadPool::ThreadPool(int workers) {
  CHECK(workers >= 1, "{} workers", workers);
  threads_.reserve(workers - 1);
  try {
    for (int worker = 1; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
  } catch (...) {  // the system has no more threads: let those that started go, then say so
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
}

void ThreadPool::run(FunctionRef<void(int)> job) {
  if (threads_.empty()) return job(0);
  job_ = &job;
  running_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  job(0);
  for (int left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_for_change(running_, left);
  }
}

void ThreadPool::work(int worker) {
  uint32_t seen = 0;
  while (true) {
    wait_for_change(generation_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    (*job_)(worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

void ThreadPool::parallel_for(int64_t count, int64_t grain,
                              FunctionRef<void(int64_t, int64_t)> body) {
  int64_t grains = (count + grain - 1) / grain;
  if (grains <= 1) {
    if (count > 0) body(0, count);
    return;
  }
  run([&](int worker) {
    int64_t begin = grains * worker / size() * grain;
    int64_t end = std::min(count, grains * (worker + 1) / size() * grain);
    if (begin < end) body(begin, end);
  });
}

}  // namespace banyan
