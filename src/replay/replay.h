// Replays a trace through the scheduler and the radix tree without a model. Measures cache hits,
// waiting times, and the cost of scheduling decisions.
//
// Time is simulated: a step takes a fixed time plus some for each row, and requests arrive by the
// trace's clock, so that queues form realistically. Decision cost is real time around
// Scheduler::plan().
//
// Everything runs on the caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "replay/trace.h"

namespace banyan {

struct ReplayConfig {
  // Needs pages for the longest request. Under the policy "priority", requests earlier in the trace
  // have higher priority; with in_dfs_order() that is the depth-first policy.
  SchedulerConfig scheduler;
  double step_s = 0;
  double row_s = 0;
  double speedup = 1;  // of the trace's clock
  bool check = false;  // check all invariants after each step: slow

  // A store of prefixes beyond memory that holds this many pages; 0: none. Loading takes no time.
  int64_t storage_pages = 0;
  std::string storage_write_policy = "write_back";  // see CacheStorageConfig
};

struct ReplayReport {
  int64_t requests = 0;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;    // of prompt_tokens, found at the first admission
  int64_t restored_tokens = 0;  // of cached_tokens, loaded from the store
  int64_t stored_tokens = 0;    // written to the store, counted at each write
  int64_t computed_rows = 0;
  int64_t retracted = 0;
  int64_t steps = 0;
  double end_s = 0;  // simulated

  std::vector<int64_t> order;  // requests in order of first admission
  // Waiting times, ascending, of requests that found at most a tenth of their prompt in the cache.
  // (That much may be a system prompt that all requests share.)
  std::vector<double> cold_wait_s;
  // Maximum of (admissions from arrival to admission) / ((n + 1) * aging_period) over requests
  // without a predecessor. n counts the requests waiting at arrival plus those retracted since. At
  // most 1, as engine/schedule/waiting_queue.h promises.
  double worst_wait_ratio = 0;

  struct Decision {
    int64_t waiting = 0, admitted = 0;
    double time_s = 0;
  };
  std::vector<Decision> decisions;

  double hit_rate() const { return static_cast<double>(cached_tokens) / prompt_tokens; }
};

// `progress` is called with the number of finished requests whenever one finishes.
ReplayReport replay(const Trace& trace, const ReplayConfig& config,
                    const std::function<void(int64_t)>& progress = {});

// Runs one request at a time in order of arrival, which shows the hit rate of LRU eviction alone.
// With pages for all tokens of the trace: the maximum over all orders.
ReplayConfig one_at_a_time(ReplayConfig config);
int64_t pages_for_all(const Trace& trace, int64_t page_size_tokens);

}  // namespace banyan
