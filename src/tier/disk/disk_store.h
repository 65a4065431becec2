// Records on a local disk, in slabs of fixed slots. Written records survive the process however it
// ends, and a power failure after about a second.
//
// The index says where a record should be; the record says what it is. So no order of writes
// matters after a crash: whatever mixture of old and new remains, a record that is not the one
// requested fails its checks, counts as a miss, and its slot is free again.
//
// A device that fails turns the store read-only or off, until the next start. The folder takes at
// most size_bytes, including other digests, which are removed first. Each class has a share of the
// rest and evicts its least recently used records.
#pragma once

#include <memory>

#include "tier/registry.h"
#include "tier/storage.h"

namespace banyan {

Result<std::unique_ptr<TierStore>> open_disk_store(const TierConfig& config,
                                                   const TierStates& states, Storage& storage);
// The same with the system's own files.
Result<std::unique_ptr<TierStore>> make_disk_store(const TierConfig& config,
                                                   const TierStates& states);

}  // namespace banyan
