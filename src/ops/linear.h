// Weight matrices: look-up and multiplication.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>
#include <span>

#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

// Rows `ids` of `table` -> [ids, columns].
Tensor gather_rows(Step& s, const PackedMatrix& table, std::span<const int32_t> ids);

// The rows of x that `rows` names -> [rows, D].
Tensor select_rows(Step& s, Tensor x, std::span<const int32_t> rows);

// x [T, columns] times weight [rows, columns] transposed, plus bias [rows] if there is one
// -> [T, rows].
Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias);

}  // namespace banyan
