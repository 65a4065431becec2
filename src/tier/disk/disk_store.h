// Records on a local disk, in slabs of fixed slots. What is written survives the process however it
// ends, and the machine's loss of power from a second later on.
//
// The index says where a record should be; the record says what it is. So nothing is written in any
// order that a crash could break: whatever mixture of old and new is left, a record that is not
// what was asked for fails its checks, is a miss, and its slot is free again.
//
// A device that fails turns the store read-only or off, until the next start. The folder takes
// size_bytes at most, those of other digests included, which go first; within it each class has its
// share and gives up what was used longest ago.
#pragma once

#include <memory>

#include "tier/registry.h"
#include "tier/storage.h"

namespace banyan {

Result<std::unique_ptr<TierStore>> open_disk_store(const TierConfig& config,
                                                   const TierStates& states, Storage& storage);
// The same on the system's own files.
Result<std::unique_ptr<TierStore>> make_disk_store(const TierConfig& config,
                                                   const TierStates& states);

}  // namespace banyan
