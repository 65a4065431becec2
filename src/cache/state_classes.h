// Classes of state units, as data. States with the same unit (page or slot) and reach share a
// class: unit i of the class is row i in the pool of each of its states. Code that holds, copies or
// evicts units loops over the classes and asks for their properties, never for a specific class. So
// a new kind of state only adds a class.
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
  int64_t window_tokens = 0;  // for kWindow
  bool advisory = false;      // a sequence may resume without its units

  bool operator==(const UnitClass&) const = default;

  bool paged() const { return unit == StateUnit::kPage; }
  bool windowed() const { return reach == StateReach::kWindow; }
  // The tree may store a copy of this state at the end of a page.
  bool snapshots() const { return reach == StateReach::kPoint; }
  // A sequence cannot resume at a position where these units are missing.
  bool decides() const { return !advisory && reach != StateReach::kNone; }
  // There is one extra unit of zeros, never allocated or written, that stands in for missing ones.
  bool has_blank() const { return advisory; }
  // The first position whose pages are needed to resume at `position`.
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

// The first class of every model: pages with full reach. A sequence has one per page of its
// positions, and a prefix is in the tree while its units of this class are.
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
  // Positions at which the state can be snapshotted are multiples of this: the least common
  // multiple of the page size and all slot alignments.
  int snapshot_alignment_tokens = 1;
  // Positions at which a sequence can resume are multiples of this; 1 for models without recurrent
  // state.
  int resume_alignment_tokens = 1;
  bool prompt_only = false;  // some state has two forms (prompt and generated)
  bool draft_trees = true;   // every state is pages with one row a token: ops/batch.h
  // Draft rows that a step may have of a sequence: what the smallest log of drafts has room for.
  int64_t draft_rows_max = kNoLog;
  static constexpr int64_t kNoLog = INT32_MAX;

  const UnitClass& operator[](int unit_class) const {
    return classes[static_cast<size_t>(unit_class)];
  }
  bool logs_drafts() const { return draft_rows_max != kNoLog; }
  // Whether any class has snapshots, and whether any class requires one to resume.
  bool keeps_snapshots() const;
  bool needs_snapshots() const;
};

// Returns the class of a state.
UnitClass class_of(const StateSpec& spec);
// Its index in `classes`, which must contain it.
int find_class(const StateClasses& classes, const StateSpec& spec);

// Builds the classes of a model's states. Errors (kUnsupported): unit and reach combinations
// without a class, lookahead, rows that do not align with pages, slots other than f32, and too many
// classes.
Result<StateClasses> classify_states(std::span<const StateSpec> specs, int page_size_tokens);

// Bytes of one unit of each class, summed over its states.
UnitCounts unit_bytes(std::span<const StateSpec> specs, const StateClasses& classes);

}  // namespace banyan
