// Units in the host's memory, under pools that lie on a device: what the device lets go of is
// copied back from here. Below it there may be another store, to which all units go by way of the
// host's memory.
//
// A unit is one row here, with the pieces of all its states in order: the payload of its record, in
// pinned memory. Copies are in the queue's order, so whatever
// computes with a unit that was read runs after its copy. A write ends when the unit is here; what
// the store below makes of it is no longer the caller's business.
//
// Of units that are as many as `slots` says, the one that was used longest ago makes room.
#pragma once

#include <memory>

#include "tensor/device.h"
#include "tier/store.h"

namespace banyan {

struct HostUnits {
  StateClasses classes;
  UnitCounts bytes = {};  // of a unit; 0: units of the class are not kept
  UnitCounts slots = {};
};

// `below` may be null. The queue must outlive the store.
std::unique_ptr<TierStore> make_host_store(const DeviceQueue& queue, const HostUnits& units,
                                           std::unique_ptr<TierStore> below);

}  // namespace banyan
