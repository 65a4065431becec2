// Scale storage of int4 and uint4: f16 times a power of two per row. The f16 and bf16 scales of a
// checkpoint stay exact and take half the bytes of f32.
#pragma once

#include <cstdint>

#include "tensor/float_types.h"

namespace banyan {

// The power of two that moves a row's largest scale near the top of f16's range.
float row_multiplier(const float* scales, int64_t count);

// Encodes scales so that scales[i] is about to_float(halves[i]) * multiplier: exactly if the scale
// is an f16, or a bf16 of at least 2^-29 of the row's largest.
void encode_scales(const float* scales, int64_t count, float multiplier, Float16* halves);

}  // namespace banyan
