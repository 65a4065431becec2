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

// Rows ids[0], .., ids[count - 1] of `table` -> [count, columns]. Kernels read `ids`.
Tensor gather_rows(Step& s, const PackedMatrix& table, const int32_t* ids, int64_t count);

// Rows rows[0], .., rows[count - 1] of x -> [count, D]. Kernels read `rows`.
Tensor select_rows(Step& s, Tensor x, const int32_t* rows, int64_t count);

// x [T, columns] times weight [rows, columns] transposed, plus bias [rows] if there is one
// -> [T, rows].
Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias);

// How the rows of x meet many weights; see GemmGroup.
struct GroupLayout {
  const int32_t* begins = nullptr;   // the first row of y of each matrix; null: all take all
  const int32_t* x_index = nullptr;  // the row of x for each row of y; null: the same
  int64_t segments = 1;         // of a row of x, one for each matrix, if there is more than one
  int64_t segment_stride = 0;   // columns from one segment to the next
  int64_t y_column_stride = 0;  // columns of y from one matrix's outputs to the next's
  const float* bias = nullptr;  // of the first matrix's outputs, or null
  int64_t bias_stride = 0;      // from one matrix's to the next's; 0: all share one
};
// What ops with many weights are made of: the products of x [T, segments * segment_stride] with
// the matrices of `weights`, to y.
void multiply_group(Step& s, Tensor x, const PackedMatrix& weights, const GroupLayout& layout,
                    Tensor y);

}  // namespace banyan
