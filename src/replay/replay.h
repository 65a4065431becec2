// A trace through the scheduler and the radix tree, without a model: which prefixes are found, who
// waits for how long, what a decision costs.
//
// Time is simulated: a step takes a fixed time and some for each of its rows, and requests arrive
// by the trace's clock, so that queues form as they would. What a decision costs is measured by the
// real clock, around Scheduler::plan().
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/scheduler.h"
#include "replay/trace.h"

namespace banyan {

struct ReplayConfig {
  // With pages for the longest request. Under the policy priority, the request that comes first in
  // the trace goes first: in_dfs_order() and it make the depth-first policy.
  SchedulerConfig scheduler;
  double step_s = 0;
  double row_s = 0;
  double speedup = 1;  // of the trace's clock
  bool check = false;  // every invariant after each step: slow
};

struct ReplayReport {
  int64_t requests = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // of them, found at the first admission
  int64_t computed_rows = 0;
  int64_t retracted = 0;
  int64_t steps = 0;
  double end_s = 0;  // simulated

  std::vector<int64_t> order;  // requests by their first admission
  // Of requests that found a tenth of their prompt in the cache at most (all of it may be a system
  // prompt that everybody shares), ascending.
  std::vector<double> cold_wait_s;
  // The most of (admissions from arrival to admission) / ((n + 1) * aging_period) that a request
  // met which followed no other, where n is how many it found waiting and how many were retracted
  // since: at most 1, as engine/waiting_queue.h says.
  double worst_wait_ratio = 0;

  struct Decision {
    int64_t waiting = 0, admitted = 0;
    double time_s = 0;
  };
  std::vector<Decision> decisions;

  double hit_rate() const {
    return static_cast<double>(cached_tokens) / static_cast<double>(prompt_tokens);
  }
};

// `progress` gets the number of requests that have ended, each time that one does.
ReplayReport replay(const Trace& trace, const ReplayConfig& config,
                    const std::function<void(int64_t)>& progress = {});

// One request at a time in order of arrival, and so what the least recently used order of eviction
// alone achieves. With pages for all tokens of the trace: the most that any order can.
ReplayConfig one_at_a_time(ReplayConfig config);
int64_t pages_for_all(const Trace& trace, int64_t page_size_tokens);

}  // namespace banyan
