// A worker without a model: the real scheduler and radix tree on a simulated clock, and the reports
// that it would send to a router. Step times are fitted to a machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "banyan/config.h"
#include "cache/kv_announcer.h"
#include "engine/schedule/scheduler.h"
#include "router/event_stream.h"

namespace banyan {

struct SimulatedWorkerConfig {
  SchedulerConfig scheduler;
  StepTimes times;
  // Number of tokens that the simulation counts as one. Larger is coarser and faster; decoding
  // makes this many steps at once.
  int64_t tokens_per_unit = 1;
};

struct SimulatedRequest {
  SequenceId id = 0;
  std::vector<TokenId> tokens;  // the prompt, and output from other workers
  int64_t tokens_max = 0;       // prompt and output together
  TokenId output = 0;           // the id of every generated token
};

class SimulatedWorker {
 public:
  SimulatedWorker(const SimulatedWorkerConfig& config, uint64_t epoch);

  void submit(SimulatedRequest request);
  // Begins a step unless one is running. Returns the seconds until it ends; negative if there is
  // nothing to do.
  double begin_step();
  bool steps() const { return stepping_; }
  // `token` is called for each sequence that gets a token, `last` if that is its last.
  void end_step(const std::function<void(SequenceId id, bool last)>& token);

  // Events for routers since the last call; may be empty.
  std::vector<KvEvent> take_events();
  LoadReport load() const;
  uint64_t epoch() const { return announcer_.log().epoch(); }
  // Prompt tokens of admitted requests; retracted ones count once.
  int64_t cached_tokens() const { return scheduler_.cached_tokens(); }
  KvAnnouncer& announcer() { return announcer_; }

 private:
  const SimulatedWorkerConfig config_;
  Scheduler scheduler_;
  KvAnnouncer announcer_;  // uses the tree
  std::unordered_map<SequenceId, TokenId> outputs_;
  StepPlan plan_;
  uint64_t taken_ = 1;  // next event for take_events()
  bool stepping_ = false;
};

}  // namespace banyan
