#include "ops/head_order.h"

#include "base/check.h"

namespace banyan {

// The rope kernel copies a head's unrotated columns; here that is all of them.
Tensor swap_heads(Step& s, Tensor x, int64_t outer, int64_t inner) {
  CHECK(x.rank() == 2 && x.dim(1) % (outer * inner) == 0, "{} columns in {} x {} heads", x.dim(1),
        outer, inner);
  int64_t dim = x.dim(1) / (outer * inner);
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  for (int64_t i = 0; i < inner; ++i) {
    s.kernels.rope({.launch = s.launch,
                    .x = x.f32() + i * dim,
                    .x_row_stride = x.stride(0),
                    .x_head_stride = inner * dim,
                    .y = y.f32() + i * outer * dim,
                    .y_row_stride = y.stride(0),
                    .y_head_stride = dim,
                    .rows = x.dim(0),
                    .heads = outer,
                    .head_dim = dim});
  }
  return y;
}

}  // namespace banyan
