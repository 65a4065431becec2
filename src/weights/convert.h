// Element conversion between the floating-point types that checkpoints store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace banyan {

// Whether elements of `dtype` can be converted: F32, BF16 and F16.
bool is_float_dtype(DType dtype);

// Converts `count` elements, rounding to nearest even. Neither side needs to be aligned.
void convert_elements(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count);

}  // namespace banyan
