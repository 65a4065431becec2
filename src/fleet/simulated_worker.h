// A worker without a model: the real scheduler and radix tree on a clock of their own, and what
// they would tell a router. How long a step takes is fitted to a machine.
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
  // What the simulation counts as one token stands for so many: coarser, and faster. Decoding makes
  // so many steps at once.
  int64_t tokens_per_unit = 1;
};

struct SimulatedRequest {
  SequenceId id = 0;
  std::vector<TokenId> tokens;  // the prompt, and what was generated elsewhere
  int64_t tokens_max = 0;       // prompt and output together
  TokenId output = 0;           // the id of every generated token
};

class SimulatedWorker {
 public:
  SimulatedWorker(const SimulatedWorkerConfig& config, uint64_t epoch);

  void submit(SimulatedRequest request);
  // Begins a step unless one runs: seconds until it ends; negative if there is nothing to do.
  double begin_step();
  bool steps() const { return stepping_; }
  // `token`: for each sequence that has another token; `last`: and no more after it.
  void end_step(const std::function<void(SequenceId id, bool last)>& token);

  // What happened since the last call, for routers; nothing: an empty list.
  std::vector<KvEvent> take_events();
  LoadReport load() const;
  uint64_t epoch() const { return announcer_.log().epoch(); }
  // Of prompts that were admitted, retracted ones counted once.
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
