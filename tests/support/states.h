// States of every kind, for tests of what keeps them.
#pragma once

#include <initializer_list>
#include <vector>

#include "cache/state_classes.h"
#include "support/value_or_abort.h"

namespace banyan::test {

inline StateSpec window_state(int64_t tokens, bool advisory = false) {
  return {.name = "window",
          .reach = StateReach::kWindow,
          .window_tokens = tokens,
          .width = 4,
          .advisory = advisory};
}

inline StateSpec slot_state(int alignment_tokens = 1, bool two_forms = false) {
  return {.name = "slot",
          .unit = StateUnit::kSlot,
          .reach = StateReach::kPoint,
          .width = 4,
          .alignment_tokens = alignment_tokens,
          .two_forms = two_forms};
}

inline StateSpec advisory_slot_state() {
  StateSpec spec = slot_state();
  spec.advisory = true;
  return spec;
}

// Belongs to a sequence and is never shared.
inline StateSpec own_slot_state() {
  return {.name = "own", .unit = StateUnit::kSlot, .reach = StateReach::kNone, .width = 4};
}

// Of a sequence, for up to `rows` draft rows.
inline StateSpec draft_log_state(int64_t rows) {
  return {.name = "log",
          .unit = StateUnit::kSlot,
          .reach = StateReach::kNone,
          .heads = rows,
          .width = 4,
          .draft_log = true};
}

inline StateClasses classes_of(const std::vector<StateSpec>& specs, int page_size_tokens) {
  return value_or_abort(classify_states(specs, page_size_tokens));
}

}  // namespace banyan::test
