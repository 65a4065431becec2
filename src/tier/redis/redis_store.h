// Records on a server that speaks Redis' protocol (Redis, Valkey, KeyDB, Dragonfly), shared by any
// number of engines. A record lies in parts of 1 MiB, of which a missing one is a miss:
//
//   b1:<digest>:<page key>:<class>:<rank>/<ranks>#<part>
//
// The server decides what goes when it is full (maxmemory-policy allkeys-lru); what nobody uses for
// TierConfig::time_to_live goes anyway. Every operation has a deadline, and a server that fails
// again and again is left alone for a while. What it answers is believed as little as a disk.
#pragma once

#include <memory>

#include "tier/registry.h"

namespace banyan {

Result<std::unique_ptr<TierStore>> make_redis_store(const TierConfig& config,
                                                    const TierStates& states);

}  // namespace banyan
