// Combines results of ranks. sum_over_ranks and gather_columns return their input if the rank is
// alone. Sums have a fixed order, independent of transport and placement, so every rank has the
// same bits.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>
#include <span>

#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

// All-reduce: the sum of all ranks' x [T, D] over a balanced binary tree of ranks -> [T, D].
Tensor sum_over_ranks(Step& s, Tensor x);

// All-gather of columns, where `units` of equal width are divided among ranks: [T, own columns] ->
// [T, all columns].
Tensor gather_columns(Step& s, Tensor x, int64_t units);

// Rows `ids` of a table of `rows` rows in `units`, of which `table` is this rank's part -> [ids,
// columns]. A row is copied from its owner and never added to zeros, which would turn -0 into 0.
Tensor gather_rows_of_ranks(Step& s, const PackedMatrix& table, std::span<const int32_t> ids,
                            int64_t rows, int64_t units);

}  // namespace banyan
