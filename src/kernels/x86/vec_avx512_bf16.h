// AVX-512 with products of bf16 pairs (BF16) and of bytes (VNNI): Cooper Lake, Zen 4 and later.
#pragma once

#include "kernels/x86/vec_avx512.h"

namespace banyan::x86 {

struct Avx512Bf16 : Avx512 {
  // sum + a.low * b.low + a.high * b.high of each dword, in the processor's order.
  static F dot2(F sum, I a, I b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static I dot4(I sum, I a, I b) { return _mm512_dpbusd_epi32(sum, a, b); }
};

}  // namespace banyan::x86
