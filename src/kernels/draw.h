// The draw kernel shared by all CPU tables, which differ only in the noise kernel.
//
// Included by files of several instruction sets; see x86/vec_avx512.h.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace banyan {

inline constexpr int64_t kNoiseQuads = 16;  // counters per call, four tokens each

// words[k][j] = word k of philox(seed; position, sample_index, first_quad + j), the noise of token
// 4 (first_quad + j) + k.
struct NoiseArgs {
  DrawNoise noise = {};
  uint32_t first_quad = 0;
  uint32_t least = 0;
  uint32_t* words = nullptr;  // [4, kNoiseQuads]
};
// Returns whether some word is >= `least`.
using NoiseKernel = bool (*)(const NoiseArgs&);

void draw_rows(const DrawArgs& args, NoiseKernel noise);

}  // namespace banyan
