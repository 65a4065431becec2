// AVX-512 with products of bf16 pairs (BF16) and of bytes (VNNI): Cooper Lake, Zen 4 and later.
#pragma once

#include "kernels/x86/vec_avx512.h"

namespace banyan::x86 {

struct Avx512Bf16 : Avx512 {
  // sum + a.low * b.low + a.high * b.high of each dword, in the processor's order.
  static F dot2(F sum, I a, I b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  // Written out, because g++ 12 copies the sums of a tile around its intrinsic: twice the time.
  static I dot4(I sum, I a, I b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static I dot4_small(I sum, I a, I b) { return dot4(sum, a, b); }
};

}  // namespace banyan::x86
