// Random workloads, each a function of its seed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/request.h"

namespace banyan::test {

// A random request and what happens to it.
struct Arrival {
  GenerateRequest request;
  int constraint_modulus = 0;    // 0: none; constraints have state, so every run makes its own
  uint64_t constraint_seed = 0;  // 0: none; of one that proposes drafts
  int step = 0;                  // submitted before this step...
  int after = -1;                // ... or, if not -1, by the sink of that arrival's last event...
  bool continues = false;        // ... whose prompt and output come before its own prompt
  int cancel_after_tokens = -1;  // cancelled by its own sink
  int cancel_step = -1;          // cancelled before this step
  bool holds = false;            // what it computed is held from its end...
  int release_step = -1;         // ... until this step, or for ever

  // A constraint in its first state; null if there is none.
  std::shared_ptr<TokenConstraint> fresh_constraint() const;
};

inline constexpr int kWorkloadVocabulary = 97;  // the smallest of the checkpoints'

struct Workload {
  EngineConfig config;
  bool hybrid = false;  // the model is support/models/hybrid_model.h's
  bool liar = false;    // support/liar.h proposes tokens
  std::vector<Arrival> arrivals;
  int flush_every = 0, clear_every = 0;  // steps between flushes of memory, of the store; 0: none
};

// A workload for one of a few golden checkpoints or a hybrid of states of every class: sequences of
// mixed lengths with common prefixes, small pools and queues, any kernel table, chunk size and
// number of threads. With `made_up`, for a hybrid that also has states of kinds that no family has.
Workload random_workload(uint64_t seed, bool made_up = false);

// The layers' states lie in memory that is not the host's.
bool has_device_memory(const EngineConfig& config);

// Has it keep prefixes in a store, by any policy.
void add_storage(uint64_t seed, Workload& workload);

}  // namespace banyan::test
