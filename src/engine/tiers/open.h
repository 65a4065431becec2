// The store that a config names, opened for a loaded model.
#pragma once

#include <memory>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/assemble.h"
#include "engine/runner.h"
#include "engine/tiers/tiers.h"

namespace banyan {

// Requires a store and a state digest in `config`. `given` replaces parts of the configured store.
Result<std::unique_ptr<TierSetup>> open_tiers(const EngineConfig& config, const Runner& runner,
                                              EngineAssembly::Storage given);

}  // namespace banyan
