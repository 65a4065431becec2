// AVX-512 with products of bf16 pairs (BF16) and of bytes (VNNI): Cooper Lake, Zen 4 and later.
#pragma once

#include "kernels/x86/vec_avx512.h"

namespace banyan::x86 {

struct Avx512Bf16 : Avx512 {
  // sum + a.low * b.low + a.high * b.high of each dword, in the processor's order.
  static F dot2(F sum, I a, I b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static I load_pairs(const BFloat16* p) { return _mm512_loadu_si512(p); }
  static I broadcast_pair(const BFloat16* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  // Of 32 columns of two rows: each dword a column of both, in the order low, high of every 128
  // bits; and from that order back to the first and the second 16 columns.
  static I interleave_low(I a, I b) { return _mm512_unpacklo_epi16(a, b); }
  static I interleave_high(I a, I b) { return _mm512_unpackhi_epi16(a, b); }
  static F columns_low(F low, F high) {
    const I order = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    return _mm512_permutex2var_ps(low, order, high);
  }
  static F columns_high(F low, F high) {
    const I order = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    return _mm512_permutex2var_ps(low, order, high);
  }
  // Written out, because g++ 12 copies the sums of a tile around its intrinsic: twice the time.
  static I dot4(I sum, I a, I b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
  static I dot4_small(I sum, I a, I b) { return dot4(sum, a, b); }
};

}  // namespace banyan::x86
