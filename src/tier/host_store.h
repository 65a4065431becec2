// Keeps units in the host's memory when the state pools are on a device: what the device evicts is
// copied back from here. Below it there may be another store, which all units reach through the
// host's memory.
//
// A unit is one row, with the pieces of all its states in order: the payload of its record, in
// pinned memory. Copies follow the queue's order, so whatever computes with a unit that was read
// runs after its copy. A write ends when the unit is here; what the store below does with it no
// longer concerns the caller. Of the `slots` units of a class, the least recently used makes room.
#pragma once

#include <memory>

#include "tensor/device.h"
#include "tier/store.h"

namespace banyan {

struct HostUnits {
  StateClasses classes;
  UnitCounts bytes = {};  // of a unit; 0: the class is not kept
  UnitCounts slots = {};
};

// `below` may be null. The queue must outlive the store.
std::unique_ptr<TierStore> make_host_store(const DeviceQueue& queue, const HostUnits& units,
                                           std::unique_ptr<TierStore> below);

}  // namespace banyan
