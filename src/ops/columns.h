// Columns of a tensor by index.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
#pragma once

#include <cstdint>

#include "ops/step.h"

namespace banyan {

// Columns columns[0], .., columns[count - 1] of x [T, D] -> [T, count]. Kernels must be able to
// read `columns`.
Tensor select_columns(Step& s, Tensor x, const int32_t* columns, int64_t count);

}  // namespace banyan
