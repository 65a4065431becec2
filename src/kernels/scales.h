// How int4 and uint4 keep the scales of a row: as f16 times one power of two of the row, so that
// scales that are f16 or bf16 in a checkpoint stay exact and take half the bytes of f32.
#pragma once

#include <cstdint>

#include "tensor/float_types.h"

namespace banyan {

// The power of two that brings the largest of a row's scales near the top of f16's range.
float row_multiplier(const float* scales, int64_t count);

// Writes scales so that scales[i] is about to_float(halves[i]) * multiplier: exactly, where the
// scale is an f16 or a bf16 not below 2^-29 of the row's largest.
void encode_scales(const float* scales, int64_t count, float multiplier, Float16* halves);

}  // namespace banyan
