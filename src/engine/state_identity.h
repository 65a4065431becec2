// All that can change a bit of what a model's layers remember, as a list that people can compare
// and one digest that processes compare. Threads, chunks of prompts, batches and schedules are not
// in it: they change no bit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "banyan/config.h"
#include "cache/page_key.h"
#include "kernels/kernel_table.h"
#include "models/load.h"

namespace banyan {

struct StateIdentity {
  std::vector<std::pair<std::string, std::string>> parts;  // name and value

  StateDigest digest() const;
};

// Of a model that was loaded, or planned, with EngineConfig::state_digest.
StateIdentity identify_states(const EngineConfig& config, const LoadedModel& model,
                              const KernelTable& kernels);

}  // namespace banyan
