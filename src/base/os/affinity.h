// Pins the workers of a pool to processors.
#pragma once

#include <sched.h>

#include <string>

#include "base/threads/thread_pool.h"

namespace banyan {

// Pins each worker except the driver's own thread to a processor of its own, so that no two share
// one and none migrates away from its caches. Applies only if the pool has a worker for every
// processor that this process may use, and the machine has no more runnable threads than
// processors. Otherwise the system schedules better. The driver's thread is not pinned, because
// threads that it starts later would inherit its mask. If the driver lands on a worker's processor,
// the pool moves it.
//
// Returns whether the workers were pinned. Call once, from the driver, before the first job.
bool pin_workers(ThreadPool& pool);

// Restricts the calling thread, and threads that it starts meanwhile, to the part `index` of
// `count` equal parts of its processors, which are contiguous: on a machine with several memory
// nodes, a part then tends to lie in one. Changes nothing if there are fewer processors than parts.
class ProcessorShare {
 public:
  ProcessorShare(int index, int count);
  ~ProcessorShare();
  ProcessorShare(const ProcessorShare&) = delete;
  ProcessorShare& operator=(const ProcessorShare&) = delete;

 private:
  cpu_set_t before_;
  bool restricted_ = false;
};

// The number of runnable threads on the whole machine, from a line of /proc/loadavg; -1 if the line
// lacks it.
int runnable_threads(const std::string& loadavg);

}  // namespace banyan
