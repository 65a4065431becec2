// AVX-512 with products of bytes (VNNI): Cascade Lake, Ice Lake and later.
#pragma once

#include "kernels/x86/vec_avx512.h"

namespace banyan::x86 {

struct Avx512Vnni : Avx512 {
  // Written out, because g++ 12 copies the sums of a tile around its intrinsic: twice the time.
  static I dot4(I sum, I a, I b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static I dot4_small(I sum, I a, I b) { return dot4(sum, a, b); }
};

}  // namespace banyan::x86
