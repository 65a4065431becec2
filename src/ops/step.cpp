#include "ops/step.h"

#include "base/signed.h"

namespace banyan {

Tensor Step::allocate(std::initializer_list<int64_t> shape) {
  size_t bytes = dtype_bytes(DType::kF32);
  for (int64_t extent : shape) bytes *= as_size(extent);
  return Tensor(arena.allocate(bytes), DType::kF32, shape);
}

void Step::copy(Tensor x, Tensor to) const {
  to.check_matrix(x.dim(1));
  CHECK(x.dim(0) == to.dim(0), "{} rows to {}", x.dim(0), to.dim(0));
  kernels.copy_rows({.launch = launch,
                     .x = x.f32(),
                     .x_row_stride = x.stride(0),
                     .y = to.f32(),
                     .y_row_stride = to.stride(0),
                     .rows = x.dim(0),
                     .dim = x.dim(1)});
}

}  // namespace banyan
