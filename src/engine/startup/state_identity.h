// Identifies a model's states across processes: everything that affects their bits, as a readable
// list and as one digest. Threads, prefill chunks, batching and scheduling are not in it, since
// they do not change a bit.
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

// Requires a model loaded, or dry-loaded, with EngineConfig::state_digest.
StateIdentity identify_states(const EngineConfig& config, const LoadedModel& model,
                              const KernelTable& kernels);

}  // namespace banyan
