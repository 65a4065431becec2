// The store that a config names, opened for a loaded model.
#pragma once

#include <memory>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/assemble.h"
#include "engine/runner.h"
#include "engine/tiers/tiers.h"
#include "tier/registry.h"

namespace banyan {

// What a store of the runner's states must know. The key of `config` is part of the digest.
TierStates tier_states(const Runner& runner, const UnitPieces& pieces, const TierConfig& config);

// Requires a store and a state digest in `config`. `given` replaces parts of the configured store.
Result<std::unique_ptr<TierSetup>> open_tiers(const EngineConfig& config, const Runner& runner,
                                              EngineAssembly::Storage given);

}  // namespace banyan
