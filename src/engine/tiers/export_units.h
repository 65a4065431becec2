// Copies of a cached prefix's states, for another engine.
#pragma once

#include <string>
#include <vector>

#include "banyan/engine.h"
#include "cache/prefix_key.h"
#include "engine/tiers/restore_plan.h"

namespace banyan {

struct UnitsOfPrefix {
  PrefixNamespace name_space;
  std::vector<PrefixToken> tokens;  // whole pages
  std::vector<RestoreUnit> units;
};

// Appends the record (tier/record.h) of each of these units that memory has, in their order. The
// pages must be computed: a request has reported as much (TokenEvent::is_progress). On the thread
// that owns the engine, which must have a state digest. kUnsupported: the states are on a device or
// divided among ranks. kInvalidArgument: there is no such page or class.
Status export_units(Engine& engine, const UnitsOfPrefix& wanted, std::string& records);

}  // namespace banyan
