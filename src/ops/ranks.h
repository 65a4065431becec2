// What ranks make of each other's results. The first two return their input where the step's rank
// is alone. Sums are in one order whatever the ranks are, run on or are joined by, so every rank
// has the same bits.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>
#include <span>

#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

// The sum of all ranks' x [T, D], added over a balanced binary tree of ranks -> [T, D].
Tensor sum_over_ranks(Step& s, Tensor x);

// The columns of all ranks' x side by side, where `units` of equal width are divided among them:
// [T, own columns] -> [T, all columns].
Tensor gather_columns(Step& s, Tensor x, int64_t units);

// Rows `ids` of a table of `rows` rows in `units`, of which this rank has its part, `table`
// -> [ids, columns]. A row is copied from its owner and never added to zeros, which would lose the
// sign of one.
Tensor gather_rows_of_ranks(Step& s, const PackedMatrix& table, std::span<const int32_t> ids,
                            int64_t rows, int64_t units);

}  // namespace banyan
