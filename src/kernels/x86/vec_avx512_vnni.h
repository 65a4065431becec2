// AVX-512 with dot products of bytes (VNNI): Cascade Lake, Ice Lake and later.
#pragma once

#include "kernels/x86/vec_avx512.h"

namespace banyan::simd {

struct Avx512Vnni : Avx512 {
  // Inline assembly, because g++ 12 copies a tile's sums around its intrinsic, which doubles the
  // time.
  static I dot4(I sum, I a, I b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static I dot4_small(I sum, I a, I b) { return dot4(sum, a, b); }
  static constexpr bool kAddsWords = false;
};

}  // namespace banyan::simd
