// What the parts of a tier share: the tree that units come from and go to, the store, where units
// lie, and counters.
#pragma once

#include <cstddef>

#include "banyan/engine.h"
#include "cache/node_keys.h"
#include "cache/radix_tree.h"
#include "engine/tiers/unit_pieces.h"
#include "tier/store.h"

namespace banyan {

static_assert(kTierLayersMax == CacheStorageStats::kLayersMax);

struct TierContext {
  RadixTree& tree;
  TierStore& store;
  NodeKeys keys;
  UnitPieces pieces;
  UnitCounts unit_bytes = {};
  CacheStorageStats stats = {};
  int64_t clears = 0;  // of the store: what was read or written before is gone

  const StateClasses& classes() const { return tree.classes(); }
  CacheLayerStats& layer(int number) { return stats.layers[number]; }
  // Whether units of the class are worth storing: a sequence cannot resume without them. Even those
  // of the path class may not be: if all layers have windows, its pages are empty.
  bool keeps(int unit_class) const {
    return classes()[unit_class].decides() && unit_bytes[unit_class] > 0;
  }
};

inline constexpr int64_t kNsPerS = 1'000'000'000;

inline uint8_t class_bit(int unit_class) {
  return static_cast<uint8_t>(1U << unsigned(unit_class));
}

// How the ids of TierJob are divided.
inline constexpr uint64_t kWriteId = uint64_t{1} << 63;  // with the index of the write
inline constexpr int kTransferShift = 24;  // below it: the index of the transfer's unit
inline constexpr uint64_t kFindId = (uint64_t{1} << kTransferShift) - 1;

}  // namespace banyan
