// The draw slot of every CPU table: they differ in how they make the noise.
//
// Files of several instruction sets include this; see x86/vec_avx512.h.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace banyan {

inline constexpr int64_t kNoiseQuads = 16;  // counters of one call, each of four tokens

// words[k][j] = word k of philox(seed; position, sample_index, first_quad + j), which is that of
// token 4 (first_quad + j) + k.
struct NoiseArgs {
  DrawNoise noise = {};
  uint32_t first_quad = 0;
  uint32_t least = 0;
  uint32_t* words = nullptr;  // [4, kNoiseQuads]
};
// Returns whether some word is at least `least`.
using NoiseKernel = bool (*)(const NoiseArgs&);

void draw_rows(const DrawArgs& args, NoiseKernel noise);

}  // namespace banyan
