// Sparse attention: index rows of pages of keys, and the keys that each row selects with them.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "cache/state_spec.h"
#include "ops/step.h"

namespace banyan {

// Scores of one launch: [part.count, heads, entries_max], which the caller's kernel fills.
struct ScoreBlock {
  RowPart part;
  float* scores = nullptr;
  int64_t entries_max = 0;
};

// The most scores of a row, over all heads: one per entry of the longest context. A mixer that
// would need more cannot be loaded.
inline constexpr int64_t kRowScoresMax = int64_t{1} << 20;

// Chooses keys for every row of `spans` (the step's own, or pieces of them), one block of rows at a
// time, after `score` has scored it. The result is in the step's arena.
SelectedKeys select_keys(Step& s, const SpanList& spans, int64_t heads, const SelectionRule& rule,
                         FunctionRef<void(const ScoreBlock&)> score);

}  // namespace banyan
