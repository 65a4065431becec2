#include "ops/step.h"

namespace banyan {

Tensor Step::allocate(std::initializer_list<int64_t> shape) {
  size_t bytes = dtype_bytes(DType::kF32);
  for (int64_t extent : shape) bytes *= static_cast<size_t>(extent);
  return Tensor(arena.allocate(bytes), DType::kF32, shape);
}

Tensor Step::keep_only(size_t mark, Tensor x) {
  CHECK(x.rank() == 2 && x.stride(0) == x.dim(1), "only dense matrices are kept");
  void* data = arena.rewind_keeping(mark, x.data(), x.bytes());
  return Tensor(data, x.dtype(), {x.dim(0), x.dim(1)});
}

}  // namespace banyan
