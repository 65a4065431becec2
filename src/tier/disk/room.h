// How the room of a disk store is divided among classes of units.
#pragma once

#include "banyan/status.h"
#include "cache/state_classes.h"
#include "tier/registry.h"

namespace banyan {

// Refuses a fraction that is none, or that divides nothing.
Status check_division(const TierConfig& config, const TierStates& states);

// Bytes for each class. What is kept in pages and what is kept in slots divide the room; within
// each, classes divide it by the size of their records.
PerClass<int64_t> divide_room(const TierConfig& config, const TierStates& states);

}  // namespace banyan
