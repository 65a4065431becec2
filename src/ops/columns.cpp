#include "ops/columns.h"

namespace banyan {

// To a kernel that copies rows, each element of a row is a row of one column.
Tensor select_columns(Step& s, Tensor x, const int32_t* columns, int64_t count) {
  Tensor y = s.allocate({x.dim(0), count});
  for (int64_t row = 0; row < x.dim(0); ++row) {
    s.kernels.copy_rows({.launch = s.launch,
                         .x = x.rows(row, 1).f32(),
                         .x_row_stride = 1,
                         .index = columns,
                         .y = y.rows(row, 1).f32(),
                         .y_row_stride = 1,
                         .rows = count,
                         .dim = 1});
  }
  return y;
}

}  // namespace banyan
