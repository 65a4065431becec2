// AVX-512 with dot products of bf16 pairs (BF16) and bytes (VNNI): Cooper Lake, Zen 4 and later.
#pragma once

#include "kernels/x86/vec_avx512_vnni.h"

namespace banyan::simd {

struct Avx512Bf16 : Avx512Vnni {
  // Per dword: sum + a.low * b.low + a.high * b.high, in the processor's order of additions.
  static F dot2(F sum, I a, I b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static I load_pairs(const BFloat16* p) { return _mm512_loadu_si512(p); }
  static I broadcast_pair(const BFloat16* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
  // Interleaves 32 columns of two rows: each dword has one column of both, in the order low, high
  // of every 128 bits; and the inverse, back to the first and the second 16 columns.
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
  // Rounds to nearest even; flushes subnormals to zero, as dot2 does.
  static void store_rounded(BFloat16* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
  // Both rounded likewise, one after the other.
  static I round_columns(F first, F second) {
    return reinterpret_cast<I>(_mm512_cvtne2ps_pbh(second, first));
  }
  // Each dword holds a lane of both, rounded likewise, with low's in the low half.
  static I round_pairs(F low, F high) {
    const I order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                                     23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    return _mm512_permutexvar_epi16(order, round_columns(low, high));
  }
  static void store_rounded(BFloat16* p, F first, F second) {
    _mm512_storeu_si512(p, round_columns(first, second));
  }
  // Whether no bf16 is infinite or NaN.
  static bool finite(I pairs) {
    const I exponent = _mm512_set1_epi16(0x7f80);
    return _mm512_cmpeq_epi16_mask(_mm512_and_si512(pairs, exponent), exponent) == 0;
  }
  // y 2^n, where the low bits of `biased` are n + 127 with n in [-126, 127]; 0 where x < least.
  // Avoids scalef, which takes hundreds of cycles when the result is not a normal number.
  static F times_power_unless_below(F x, F least, F y, F biased) {
    F power = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(biased), 23));
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), y, power);
  }

  static I subtract_bytes(I a, I b) { return _mm512_sub_epi8(a, b); }
};

}  // namespace banyan::simd
