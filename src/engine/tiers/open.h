// The store that a config names, opened for a loaded model.
#pragma once

#include <memory>

#include "banyan/config.h"
#include "banyan/status.h"
#include "engine/assemble.h"
#include "engine/runner.h"
#include "engine/tiers/tiers.h"

namespace banyan {

// `config` has a store and a digest of the states; `given` may stand in for parts of it.
Result<std::unique_ptr<TierSetup>> open_tiers(const EngineConfig& config, const Runner& runner,
                                              EngineAssembly::Storage given);

}  // namespace banyan
