// Another order of the heads in a row. Ops take tensors and return a new tensor: each checks
// shapes, allocates its result from the step's arena and calls the kernel table.
#pragma once

#include <cstdint>

#include "ops/step.h"

namespace banyan {

// x [T, outer * inner * dim] with columns [outer, inner, dim] -> the same with [inner, outer, dim].
Tensor swap_heads(Step& s, Tensor x, int64_t outer, int64_t inner);

}  // namespace banyan
