#include "base/threads/thread_pool.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <new>
#include <string>

#include "base/check.h"
#include "base/os/cgroup.h"
#include "base/os/memory.h"
#include "base/threads/pause.h"

namespace banyan {
namespace {

using std::chrono::steady_clock;

// How long a waiter polls before it sleeps. Longer than a wake-up takes in a virtual machine (10 to
// 30 us) and than the gap between most kernels of a step.
constexpr auto kPollTime = std::chrono::microseconds(50);
constexpr int kPollsPerClock = 64;  // polls per clock read: about a microsecond

// Writes only if the value changed, since the other threads read it at every job.
void note_place(std::atomic<int>& place) {
  int processor = ::sched_getcpu();
  if (place.load(std::memory_order_relaxed) != processor) {
    place.store(processor, std::memory_order_relaxed);
  }
}

// The workers of a job wait for each other at barriers, so none may leave it by an exception.
void take_share(FunctionRef<void(int)> job, int worker) {
  try {
    job(worker);
  } catch (const std::bad_alloc& e) {
    exit_without_memory(e);
  }
}

// If the system has put the driver on a worker's processor, moves it to a free processor that it
// may use, without pinning it there. A pinned worker cannot move away, and the system may leave two
// threads on one processor for over a second.
template <class Places>
void leave_workers(const Places& places) {
  cpu_set_t allowed, free;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  free = allowed;
  for (size_t worker = 1; worker < places.size(); ++worker) {
    int processor = places[worker].processor.load(std::memory_order_relaxed);
    if (processor >= 0 && processor < CPU_SETSIZE) CPU_CLR(processor, &free);
  }
  if (CPU_COUNT(&free) == 0 || ::sched_setaffinity(0, sizeof(free), &free) != 0) return;
  ::sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int affinity = 1;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) affinity = std::max(1, CPU_COUNT(&set));
  int processors = affinity;
  for (const std::string& folder : cgroup_folders("cpu")) {
    processors = std::min(processors, cgroup_processors(folder));
  }
  return processors;
}

ThreadPool::ThreadPool(int workers) : active_(workers), places_(workers) {
  CHECK(workers >= 1, "{} workers", workers);
  threads_.reserve(workers - 1);
  try {
    for (int worker = 1; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { work(worker); });
    }
  } catch (...) {  // out of threads: join those that started, then report
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  jobs_.advance();
  uses_.advance();
}

void ThreadPool::use(int workers) {
  CHECK(workers >= 1 && workers <= this->workers(), "{} workers of {}", workers, this->workers());
  int before = active_;
  if (workers == before) return;
  if (workers < before) {
    active_ = workers;  // before a last job, after which each worker sees whether it leaves
    hand_out([](int) {}, before);
    return;
  }
  uint32_t finished = finished_.value.load(std::memory_order_relaxed);
  running_ = workers - before;
  active_ = workers;
  uses_.advance();
  wait_for_change(finished_, finished);
}

// Sleeps after a job, unless the worker takes part in the next one. False: the pool ends.
bool ThreadPool::take_part(int worker, uint32_t& jobs_seen) {
  bool leaves = worker >= active_;
  uint32_t uses = uses_.value;  // the driver may call use() as soon as the job is done
  finish();
  if (!leaves) return true;
  places_[worker].processor = -1;
  while (worker >= active_) {
    uses_.sleep_while(uses);
    uses = uses_.value;
    if (stopping_) return false;
  }
  jobs_seen = jobs_.value;
  finish();
  return true;
}

void ThreadPool::finish() {
  if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.advance();
}

// Either the sleeper is counted before `sleepers` is read, or it sees the new value: each side
// writes one variable and then reads the other.
void ThreadPool::Counter::advance() {
  value.fetch_add(1);
  if (sleepers.load() > 0) ::syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX);
}

// std::atomic::wait would yield first. A thread that yields to a neighbour waits for its whole time
// slice, whereas a woken sleeper gets the core immediately.
void ThreadPool::Counter::sleep_while(uint32_t old) {
  sleepers.fetch_add(1);
  while (value.load() == old) ::syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr);
  sleepers.fetch_sub(1);
}

bool ThreadPool::shares_processor() const {
  int own = ::sched_getcpu();
  auto on_it = [&](const Place& place) {
    return place.processor.load(std::memory_order_relaxed) == own;
  };
  return std::ranges::count_if(places_, on_it) > 1;
}

// Polls `counter`; returns whether it moved past `old`.
bool ThreadPool::poll_for_change(const Counter& counter, uint32_t old) const {
  auto changed = [&] {
    for (int poll = 0; poll < kPollsPerClock; ++poll) {
      if (counter.value.load(std::memory_order_acquire) != old) return true;
      pause();
    }
    return false;
  };
  if (changed()) return true;
  if (shares_processor()) return false;
  for (auto end = steady_clock::now() + kPollTime; steady_clock::now() < end;) {
    if (changed()) return true;
  }
  return false;
}

void ThreadPool::wait_for_change(Counter& counter, uint32_t old) {
  if (!poll_for_change(counter, old)) counter.sleep_while(old);
}

void ThreadPool::run(FunctionRef<void(int)> job) {
  if (active_ == 1) return job(0);
  hand_out(job, active_);
}

void ThreadPool::hand_out(FunctionRef<void(int)> job, int workers) {
  job_ = &job;
  uint32_t finished = finished_.value.load(std::memory_order_relaxed);
  running_.store(workers - 1, std::memory_order_relaxed);
  jobs_.advance();
  note_place(places_[0].processor);
  if (shares_processor()) {
    leave_workers(places_);
    note_place(places_[0].processor);
  }
  take_share(job, 0);
  wait_for_change(finished_, finished);
}

void ThreadPool::work(int worker) {
  uint32_t seen = 0;
  do {
    wait_for_change(jobs_, seen++);
    if (stopping_.load(std::memory_order_relaxed)) return;
    note_place(places_[worker].processor);
    take_share(*job_, worker);
  } while (take_part(worker, seen));
}

void ThreadPool::barrier() {
  if (active_ == 1) return;
  // Read before arriving, since the last worker to arrive advances it.
  uint32_t passed = barriers_.value.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == size() - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    barriers_.advance();
  } else {
    wait_for_change(barriers_, passed);
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
