// Which processors the workers of a pool run on.
#pragma once

#include <string>

#include "base/thread_pool.h"

namespace banyan {

// Ties each worker but the driver's own thread to a processor of its own, so that the system never
// puts two on one and none moves away from its caches. Only where the pool has a worker for every
// processor that this process may use, and no more threads want to run than there are processors:
// elsewhere the system knows better where there is room. The driver's thread stays free, because
// threads that it starts later would inherit its place; the pool moves it when it meets a worker.
//
// Returns whether the workers were tied. To be called once, by the driver, before the first job.
bool pin_workers(ThreadPool& pool);

// Threads of the whole machine that run or wait to, by a line of /proc/loadavg; -1 where it has no
// such number.
int runnable_threads(const std::string& loadavg);

}  // namespace banyan
