// Weight matrices: lookup and multiplication.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>
#include <span>

#include "ops/rowwise.h"
#include "ops/step.h"
#include "quant/formats.h"

namespace banyan {

// Rows ids[0], .., ids[count - 1] of `table` -> [count, columns]. Kernels must be able to read
// `ids`.
Tensor gather_rows(Step& s, const PackedMatrix& table, const int32_t* ids, int64_t count);

// Rows rows[0], .., rows[count - 1] of x -> [count, D]. Kernels must be able to read `rows`.
Tensor select_rows(Step& s, Tensor x, const int32_t* rows, int64_t count);

// Where a product rounds x: in what the next product of the same x finds, or in memory of its own,
// so that x may be rounded while another product still reads its own.
enum class Workspace { kShared, kOwn };

// x [T, columns] times weight [rows, columns] transposed, plus bias [rows] if there is one
// -> [T, rows].
Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias);
// The same for matrices of consecutive outputs: -> [T, rows of all].
Tensor linear(Step& s, Tensor x, std::span<const PackedMatrix> weights, Tensor bias,
              Workspace workspace = Workspace::kShared);

// Gates, then as many ups: [T, 2 D]. Or, where one kernel multiplies and activates, what it made of
// them: [T, D].
struct Gates {
  Tensor rows;
  bool activated = false;
  // Of the product of what is activated. A kernel that activates also rounds for it, and still
  // reads its own x then.
  Workspace next = Workspace::kShared;
};
// linear() of gates and ups.
Gates gated_linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias, const Glu& glu);
// The activation of what gated_linear() returned -> [T, D].
Tensor activate(Step& s, const Gates& gates, const Glu& glu);

// How the rows of x map to several weights; see GemmGroup.
struct GroupLayout {
  const int32_t* begins = nullptr;   // first row of y of each matrix; null: each takes all rows
  const int32_t* x_index = nullptr;  // row of x for each row of y; null: the same
  int64_t segments = 1;              // segments per row of x: one per matrix, or a single one
  int64_t segment_stride = 0;        // columns from one segment to the next
  int64_t y_column_stride = 0;       // columns of y from one matrix's outputs to the next's
  const float* bias = nullptr;       // outputs of the first matrix, or null
  int64_t bias_stride = 0;           // between matrices; 0: all share one
  Workspace workspace = Workspace::kShared;
};
// The basis of ops with several weights: multiplies x [T, segments * segment_stride] with the
// matrices of `weights` into y.
void multiply_group(Step& s, Tensor x, const PackedMatrix& weights, const GroupLayout& layout,
                    Tensor y);
// The same of gates and ups.
Gates multiply_gated_group(Step& s, Tensor x, const PackedMatrix& weights,
                           const GroupLayout& layout, Tensor y, const Glu& glu);

}  // namespace banyan
