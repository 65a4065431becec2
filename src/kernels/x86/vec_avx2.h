// Eight f32 lanes of AVX2 with FMA and F16C. vec_avx512.h documents the functions and the rule
// about inline functions.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/float_types.h"

namespace banyan::simd {

struct Avx2 {
  using F = __m256;
  using I = __m256i;
  static constexpr int64_t kLanes = 8;
  // 3 x 4 sums, 3 activations and a weight fill the 16 registers.
  static constexpr int kTileRows = 3;
  // 5 x 2 sums, 2 weights, an activation, and temporaries for unpacking.
  static constexpr int kGemmRows = 5, kGemmRowsOfFp8 = 4;
  static constexpr int kGemmRowsOfBytes = 4, kGemmRowsOfNibbles = 4, kGemmTallRowsOfNibbles = 0;
  // Zen 3 reads four streams a third faster than two.
  static constexpr int kGemmBlocks = 1, kGemmStreams = 4, kGemmStreamsOfFp8 = 2;
  static constexpr int kRegisters = 16;

  static F set(float x) { return _mm256_set1_ps(x); }

  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const BFloat16* p) { return widen(words(p)); }
  static F load(const Float16* p) { return _mm256_cvtph_ps(words(p)); }
  static F load(const int8_t* p) { return widen_int8(eight_bytes(p)); }
  static F load(const Float8E4M3* p) { return widen_e4m3(eight_bytes(p)); }

  static F load_first(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  static F load_first(const BFloat16* p, int64_t n) { return widen(first_words(p, n)); }
  static F load_first(const Float16* p, int64_t n) { return _mm256_cvtph_ps(first_words(p, n)); }
  static F load_first(const int8_t* p, int64_t n) { return widen_int8(first_bytes(p, n)); }
  static F load_first(const Float8E4M3* p, int64_t n) { return widen_e4m3(first_bytes(p, n)); }

  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static void store(BFloat16* p, F x) { std::memcpy(p, Words{narrow(x)}.bytes, 16); }
  static void store(Float16* p, F x) { std::memcpy(p, Words{halve(x)}.bytes, 16); }

  static void store_first(float* p, int64_t n, F x) { _mm256_maskstore_ps(p, first(n), x); }
  static void store_first(BFloat16* p, int64_t n, F x) {
    std::memcpy(p, Words{narrow(x)}.bytes, 2 * n);
  }
  static void store_first(Float16* p, int64_t n, F x) {
    std::memcpy(p, Words{halve(x)}.bytes, 2 * n);
  }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static F copy_sign(F magnitude, F sign) {
    return _mm256_or_ps(magnitude, _mm256_and_ps(sign, _mm256_set1_ps(-0.0f)));
  }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT); }
  static F power_of_two(F n) {
    __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static uint32_t equal_lanes(F a, F b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
  }

  static float lane0(F a) { return _mm256_cvtss_f32(a); }
  static float sum(F a) {
    float sums[4];
    sum4(a, a, a, a, sums);
    return sums[0];
  }
  static float largest(F a) {
    F m = max(a, _mm256_permute2f128_ps(a, a, 1));
    m = max(m, _mm256_permute_ps(m, 0x4e));
    m = max(m, _mm256_permute_ps(m, 0xb1));
    return _mm256_cvtss_f32(m);
  }

  static void sum4(F a, F b, F c, F d, float* sums) {
    F ac = add(_mm256_permute2f128_ps(a, c, 0x20), _mm256_permute2f128_ps(a, c, 0x31));
    F bd = add(_mm256_permute2f128_ps(b, d, 0x20), _mm256_permute2f128_ps(b, d, 0x31));
    // Half of ac and of bd each: pairs of lanes are added until one lane per input is left.
    F abcd = add(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xee));
    abcd = add(abcd, _mm256_permute_ps(abcd, 0xb1));  // a a b b | c c d d
    __m256i places = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    _mm_storeu_ps(sums, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(abcd, places)));
  }

  static void transpose(F (&rows)[8]) {
    F pairs[8], fours[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    // Half q of fours[4 i + k] is column 4 q + k of rows 4 i to 4 i + 3.
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
      fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
      fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
      fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      rows[k] = _mm256_permute2f128_ps(fours[k], fours[4 + k], 0x20);
      rows[4 + k] = _mm256_permute2f128_ps(fours[k], fours[4 + k], 0x31);
    }
  }

  static I load_line(const std::byte* line, int v) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line) + v);
  }
  static I set_dword(int32_t x) { return _mm256_set1_epi32(x); }
  static I load_bytes(const std::byte* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static I add_dwords(I a, I b) { return _mm256_add_epi32(a, b); }
  static I dword_numbers() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  static void store_dwords(uint32_t* p, I a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
  }
  static uint32_t dwords_from(I a, I least) {
    return static_cast<uint32_t>(
        _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(a, least), a)));
  }
  static I bit_xor(I a, I b) { return _mm256_xor_si256(a, b); }
  static I multiply_even_dwords(I a, I b) { return _mm256_mul_epu32(a, b); }
  static I odd_dwords(I a) { return _mm256_srli_epi64(a, 32); }
  static I join_dwords(I even, I odd) {
    return _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
  }
  static I multiply_dwords(I a, I b) { return _mm256_mullo_epi32(a, b); }
  static F to_float(I a) { return _mm256_cvtepi32_ps(a); }
  static I store_bytes(int8_t* p, F x) {
    I integers = _mm256_cvtps_epi32(x);
    I words = _mm256_packs_epi32(integers, integers);  // 0..3 0..3 | 4..7 4..7
    I bytes = _mm256_packs_epi16(words, words);
    I joined = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    std::memcpy(p, &joined, 8);
    return integers;
  }
  static int32_t sum_dwords(I a) {
    I pairs = _mm256_hadd_epi32(a, a);
    I fours = _mm256_hadd_epi32(pairs, pairs);
    return _mm256_extract_epi32(fours, 0) + _mm256_extract_epi32(fours, 4);
  }
  static void spread_codes(const int8_t* codes, std::byte* words) {
    I wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    wide = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(wide, 0xd8), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), wide);
  }
  static F power_from_bits(I exponents) {
    I bits = _mm256_slli_epi32(exponents, 23);
    return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x400000)));
  }

  static I load_pairs_first(const BFloat16* p, int64_t n) {
    I pairs = _mm256_setzero_si256();
    std::memcpy(&pairs, p, 2 * n);
    return pairs;
  }
  static F low_bf16(I pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
  static F high_bf16(I pairs) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(~0xffff)));
  }
  static I even_bytes(I a) { return _mm256_and_si256(a, _mm256_set1_epi16(0xff)); }
  static I odd_bytes(I a) { return _mm256_srli_epi16(a, 8); }
  static I low_nibbles(I a) { return _mm256_and_si256(a, _mm256_set1_epi8(0xf)); }
  static I high_nibbles(I a) { return low_nibbles(_mm256_srli_epi16(a, 4)); }
  static I look_up(const int8_t* table, I a) {
    __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), a);
  }
  static I fp8_to_bf16(I codes) {
    I magnitude = _mm256_and_si256(codes, _mm256_set1_epi16(0x7f));
    I sign = _mm256_slli_epi16(_mm256_xor_si256(codes, magnitude), 8);
    I normal = _mm256_add_epi16(_mm256_slli_epi16(magnitude, 4), _mm256_set1_epi16(120 << 7));
    // High and low bytes of m * 2^-9 in bf16, for m < 8.
    I high = look_up(kSubnormalHigh, magnitude), low = look_up(kSubnormalLow, magnitude);
    I subnormal = _mm256_or_si256(_mm256_slli_epi16(high, 8), even_bytes(low));
    I small = _mm256_cmpgt_epi16(_mm256_set1_epi16(8), magnitude);
    return _mm256_or_si256(_mm256_blendv_epi8(normal, subnormal, small), sign);
  }
  static I dot4(I sum, I a, I b) {
    I b_even = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8);
    I even = _mm256_madd_epi16(even_bytes(a), b_even);
    I odd = _mm256_madd_epi16(odd_bytes(a), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
  }

  static I dot4_small(I sum, I a, I b) {
    I words = _mm256_maddubs_epi16(a, b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }

  // The same for a and b from -127 to 127.
  static constexpr bool kMultipliesSigned = true;
  static I dot4_signed(I sum, I a, I b) {
    I words = _mm256_maddubs_epi16(_mm256_abs_epi8(b), _mm256_sign_epi8(a, b));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }

  static constexpr bool kAddsWords = true;
  static I word_products(I a, I b) { return _mm256_maddubs_epi16(a, b); }
  static I in_order(I x) {
    asm volatile("" : "+v"(x));
    return x;
  }
  static I add_words(I a, I b) { return _mm256_add_epi16(a, b); }
  static I add_word_pairs(I sum, I words) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
  }
  static I multiply_word_pairs(I a, I b) { return _mm256_madd_epi16(a, b); }
  static I join_bits(I a, I b) { return _mm256_or_si256(a, b); }
  static I move_bits(I a, int left, int mask) {
    I moved = left >= 0 ? _mm256_slli_epi16(a, left) : _mm256_srli_epi16(a, -left);
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask)));
  }

 private:
  static constexpr int8_t kSubnormalHigh[16] = {0, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c};
  static constexpr int8_t kSubnormalLow[16] = {0, 0, -0x80, -0x40, 0, 0x20, 0x40, 0x60};

  union Words {
    __m128i vector;
    char bytes[16];
  };

  static __m256i first(int64_t n) {
    __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
  }
  template <class T>
  static __m128i words(const T* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  template <class T>
  static __m128i first_words(const T* p, int64_t n) {
    Words words = {_mm_setzero_si128()};
    std::memcpy(words.bytes, p, 2 * n);
    return words.vector;
  }

  template <class T>
  static __m128i eight_bytes(const T* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  template <class T>
  static __m128i first_bytes(const T* p, int64_t n) {
    Words bytes = {_mm_setzero_si128()};
    std::memcpy(bytes.bytes, p, n);
    return bytes.vector;
  }
  static F widen_int8(__m128i codes) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)); }
  // Shifted into place, an e4m3 code is 2^-8 of its value as f16, including subnormals.
  static F widen_e4m3(__m128i codes) {
    __m128i places = _mm_slli_epi16(_mm_cvtepi8_epi16(codes), 7);
    return _mm256_cvtph_ps(_mm_and_si128(places, _mm_set1_epi16(static_cast<int16_t>(0xbf80))));
  }

  static F widen(__m128i bf16) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bf16), 16));
  }
  static __m128i halve(F x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
  // As from_float<BFloat16>.
  static __m128i narrow(F x) {
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    __m256i packed = _mm256_packus_epi32(high, high);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
  }
};

}  // namespace banyan::simd
