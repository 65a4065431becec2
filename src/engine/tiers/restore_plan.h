// How much of a prompt is worth loading: which of its positions could be resumed if stored units
// were loaded, and which of these is reached soonest. Works on a description, without a tree, a
// store or a clock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/state_classes.h"
#include "engine/tiers/rates.h"

namespace banyan {

// Where the units of a prompt's whole pages are.
struct PrefixUnits {
  std::vector<uint8_t> resident;  // of each page: a bit for each class whose unit is in memory
  std::vector<uint8_t> stored;    // ... whose unit a store has
  // The layer of the store that has each unit, by page and class; empty: all are in the first.
  std::vector<PerClass<uint8_t>> layers;

  int64_t pages() const { return std::ssize(resident); }
  bool missing(int64_t page, int unit_class) const { return !bit(resident, page, unit_class); }
  bool loadable(int64_t page, int unit_class) const {
    return missing(page, unit_class) && bit(stored, page, unit_class);
  }
  int layer(int64_t page, int unit_class) const {
    if (layers.empty()) return 0;
    return layers[page][unit_class];
  }

 private:
  static bool bit(const std::vector<uint8_t>& bits, int64_t page, int unit_class) {
    return (bits[page] >> unit_class & 1) != 0;
  }
};

struct RestoreQuestion {
  const StateClasses& classes;
  const UnitCounts& unit_bytes;
  const PrefixUnits& units;
  int64_t base = 0;             // where the tree can resume
  int64_t length = 0;           // tokens to be available in the end
  int64_t tokens_min = 1;       // loading fewer is not worth it
  UnitCounts room = {};         // units that may be allocated
  LayerBytes bytes_ahead = {};  // loaded first, for others
};

struct RestorePlan {
  int64_t end = 0;        // the position to load up to; 0: nothing is worth loading
  bool too_dear = false;  // something could be loaded, but computing is faster
  LayerBytes bytes = {};
  double load_s = 0, saved_s = 0;  // saved: the time to compute it instead
};

// Loads only what takes at least a tenth longer to compute.
RestorePlan plan_restore(const RestoreQuestion& question, const LayerCosts& load,
                         const PrefillCost& prefill);

struct RestoreUnit {
  int32_t page = 0;
  int unit_class = 0;
};
// What has to be loaded to resume at `end`: by page, and of a page by class.
std::vector<RestoreUnit> units_to_load(const StateClasses& classes, const PrefixUnits& units,
                                       int64_t end);

}  // namespace banyan
