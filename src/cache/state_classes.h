// Classes of units, as data. States that are kept alike (the same unit and the same reach) share
// units: unit i of a class is row i of the pool of each of its states. Whatever holds, moves or
// evicts units goes through the classes in a loop and asks a class for its properties, never for
// its name, so a state of a new kind makes a new class and nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "banyan/status.h"
#include "cache/state_spec.h"
#include "kernels/kernel_table.h"

namespace banyan {

struct UnitClass {
  StateUnit unit = StateUnit::kPage;
  StateReach reach = StateReach::kAll;
  int64_t window_tokens = 0;  // with kWindow
  bool advisory = false;      // units may be missing where a sequence is resumed

  bool operator==(const UnitClass&) const = default;

  bool paged() const { return unit == StateUnit::kPage; }
  bool windowed() const { return reach == StateReach::kWindow; }
  // The tree may have a copy of the state at the end of a page.
  bool snapshots() const { return reach == StateReach::kPoint; }
  // A position where its units are missing cannot be resumed.
  bool decides() const { return !advisory && reach != StateReach::kNone; }
  // There is one more unit, which nobody takes or writes: zeros, in place of what is missing.
  bool has_blank() const { return !decides(); }
  // Pages from this position on are needed to resume at `position`.
  int64_t reach_begin(int64_t position) const {
    if (reach == StateReach::kAll) return 0;
    return windowed() ? std::max<int64_t>(0, position - (window_tokens - 1)) : position;
  }
};

// "pages", "pages of a window of 512 tokens", "advisory slots".
std::string describe(const UnitClass& unit_class);

inline constexpr int kUnitClassesMax = 8;
template <class T>
using PerClass = std::array<T, kUnitClassesMax>;
using UnitCounts = PerClass<int64_t>;

// The first class of every model: pages that reach all the way back. A sequence has one for each
// page of its positions, and a prefix is in the tree as long as its units of this class are.
inline constexpr int kPathClass = 0;

// At most one unit of each class.
struct UnitSet {
  PerClass<int32_t> units;  // -1: none

  constexpr UnitSet() { units.fill(-1); }
  int32_t& operator[](int unit_class) { return units[static_cast<size_t>(unit_class)]; }
  int32_t operator[](int unit_class) const { return units[static_cast<size_t>(unit_class)]; }
  bool operator==(const UnitSet&) const = default;
};

struct StateClasses {
  int page_size_tokens = 1;
  PerClass<UnitClass> classes = {};
  int count = 1;
  // The least common multiple of the page size and of every slot's alignment: the state at such a
  // position can be kept.
  int snapshot_alignment_tokens = 1;
  // The same where some class decides by snapshots; a model without resumes anywhere.
  int resume_alignment_tokens = 1;
  bool prompt_only = false;  // some state has two forms

  const UnitClass& operator[](int unit_class) const {
    return classes[static_cast<size_t>(unit_class)];
  }
  // Some class has snapshots; some class is only resumed where it has one.
  bool keeps_snapshots() const;
  bool needs_snapshots() const;
};

// The class of a state.
UnitClass class_of(const StateSpec& spec);
// Its place among `classes`, which must have it.
int find_class(const StateClasses& classes, const StateSpec& spec);

// Refuses what this version does not keep: units and reaches that make no class, entries that look
// ahead, rows that do not fit the pages, slots of anything but f32, and too many classes.
Result<StateClasses> classify_states(std::span<const StateSpec> specs, int page_size_tokens);

// What a unit of each class takes, in all its states.
UnitCounts unit_bytes(std::span<const StateSpec> specs, const StateClasses& classes);

}  // namespace banyan
