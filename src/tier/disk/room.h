// Divides a disk store's room among the classes of units.
#pragma once

#include "banyan/status.h"
#include "cache/state_classes.h"
#include "tier/registry.h"

namespace banyan {

// Refuses a fraction outside [0, 1], or one with nothing to divide.
Status check_division(const TierConfig& config, const TierStates& states);

// Bytes for each class. Classes of pages and classes of slots divide the room; within each kind,
// classes divide it by the size of their records.
PerClass<int64_t> divide_room(const TierConfig& config, const TierStates& states);

}  // namespace banyan
