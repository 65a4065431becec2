// Sixteen f32 lanes of AVX-512 (F, BW, DQ, VL): the vector class for kernels/vector.
//
// The algorithms are templates over such a class, compiled once per instruction set. Whatever they
// call must also depend on the class or be `static`. Otherwise the linker would merge inline
// functions that files compile with different flags, and older processors would crash.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "tensor/float_types.h"

namespace banyan::simd {

struct Avx512 {
  using F = __m512;
  using I = __m512i;
  static constexpr int64_t kLanes = 16;
  // Rows of activations per register tile: 6 x 4 sums, 4 weights and an activation, of 32
  // registers.
  static constexpr int kTileRows = 6;
  // Register tiles of GEMM, in rows and blocks of 16 outputs. 8 x 2 sums hide the latency of a
  // product, need little bandwidth from the level-2 cache, and reuse unpacked weights for 8 rows. 6
  // x 2 leave room for as many totals. A single row reads kGemmStreams blocks in parallel, more for
  // fp8, which is slow to unpack.
  static constexpr int kGemmRows = 8, kGemmRowsOfFp8 = 8;
  static constexpr int kGemmRowsOfBytes = 8, kGemmRowsOfNibbles = 6, kGemmTallRowsOfNibbles = 8;
  static constexpr int kGemmBlocks = 2, kGemmStreams = 2, kGemmStreamsOfFp8 = 4;
  static constexpr int kRegisters = 32;

  static F set(float x) { return _mm512_set1_ps(x); }

  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const BFloat16* p) { return widen(_mm256_loadu_si256(words(p))); }
  static F load(const Float16* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(words(p))); }
  // Loads codes of a quantised row: int8 unchanged, e4m3 as 2^-8 of its value.
  static F load(const int8_t* p) { return widen_int8(sixteen_bytes(p)); }
  static F load(const Float8E4M3* p) { return widen_e4m3(sixteen_bytes(p)); }

  // Loads the first n < kLanes lanes, without reading further; the others are zero.
  static F load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static F load_first(const BFloat16* p, int64_t n) {
    return widen(_mm256_maskz_loadu_epi16(first(n), p));
  }
  static F load_first(const Float16* p, int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p));
  }
  static F load_first(const int8_t* p, int64_t n) {
    return widen_int8(_mm_maskz_loadu_epi8(first(n), p));
  }
  static F load_first(const Float8E4M3* p, int64_t n) {
    return widen_e4m3(_mm_maskz_loadu_epi8(first(n), p));
  }

  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store(BFloat16* p, F x) { _mm256_storeu_si256(words(p), narrow(x)); }
  static void store(Float16* p, F x) { _mm256_storeu_si256(words(p), halve(x)); }

  static void store_first(float* p, int64_t n, F x) { _mm512_mask_storeu_ps(p, first(n), x); }
  static void store_first(BFloat16* p, int64_t n, F x) {
    _mm256_mask_storeu_epi16(p, first(n), narrow(x));
  }
  static void store_first(Float16* p, int64_t n, F x) {
    _mm256_mask_storeu_epi16(p, first(n), halve(x));
  }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F copy_sign(F magnitude, F sign) {  // magnitude >= 0
    return _mm512_or_ps(magnitude, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f)));
  }
  // Returns the second operand if either is NaN.
  static F abs(F a) { return _mm512_abs_ps(a); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT); }
  // 2^n for integral n in [-126, 127].
  static F power_of_two(F n) {
    __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
  }
  // Bit l is set if lane l is equal in both.
  static uint32_t equal_lanes(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }

  static float lane0(F a) { return _mm512_cvtss_f32(a); }
  static float sum(F a) {
    float sums[4];
    sum4(a, a, a, a, sums);
    return sums[0];
  }
  static float largest(F a) { return _mm512_reduce_max_ps(a); }

  // sums[i] = the sum of the lanes of a, b, c or d. All four use the same tree of additions, so a
  // sum does not depend on its place.
  static void sum4(F a, F b, F c, F d, float* sums) {
    F ab = add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    F cd = add(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    // One quarter of the register for each of a, b, c and d.
    F abcd = add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    abcd = add(abcd, _mm512_permute_ps(abcd, 0x4e));
    abcd = add(abcd, _mm512_permute_ps(abcd, 0xb1));
    __m512i quarters = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    _mm_storeu_ps(sums, _mm512_castps512_ps128(_mm512_permutexvar_ps(quarters, abcd)));
  }

  // ---- Dwords ----

  // Transposes: dword j of rows[i] becomes dword i of rows[j].
  static void transpose(I (&rows)[16]) {
    I pairs[16], fours[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
      fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
      fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
      fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    // Quarter q of fours[4 i + k] is column 4 q + k of rows 4 i to 4 i + 3.
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      I even_low = _mm512_shuffle_i32x4(fours[k], fours[4 + k], 0x88);
      I odd_low = _mm512_shuffle_i32x4(fours[k], fours[4 + k], 0xdd);
      I even_high = _mm512_shuffle_i32x4(fours[8 + k], fours[12 + k], 0x88);
      I odd_high = _mm512_shuffle_i32x4(fours[8 + k], fours[12 + k], 0xdd);
      rows[k] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
      rows[4 + k] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
      rows[8 + k] = _mm512_shuffle_i32x4(even_low, even_high, 0xdd);
      rows[12 + k] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd);
    }
  }
  static void transpose(F (&rows)[16]) {
    I dwords[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) dwords[i] = _mm512_castps_si512(rows[i]);
    transpose(dwords);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_castsi512_ps(dwords[i]);
  }

  // Register v of a 64-byte line.
  static I load_line(const std::byte* line, int v) {
    return _mm512_loadu_si512(line + v * static_cast<int>(sizeof(I)));
  }
  static void store_line(std::byte* line, I a) { _mm512_storeu_si512(line, a); }
  static I set_dword(int32_t x) { return _mm512_set1_epi32(x); }
  static I load_bytes(const std::byte* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I add_dwords(I a, I b) { return _mm512_add_epi32(a, b); }
  static I dword_numbers() {
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  static void store_dwords(uint32_t* p, I a) { _mm512_storeu_si512(p, a); }
  // For each unsigned dword, one or more bits: a >= least.
  static uint32_t dwords_from(I a, I least) { return _mm512_cmpge_epu32_mask(a, least); }
  static I bit_xor(I a, I b) { return _mm512_xor_si512(a, b); }
  // Unsigned products of the even dwords, as quadwords; the odd dwords moved to the even places;
  // the even dwords of `even` interleaved with those of `odd`.
  static I multiply_even_dwords(I a, I b) { return _mm512_mul_epu32(a, b); }
  static I odd_dwords(I a) { return _mm512_srli_epi64(a, 32); }
  static I join_dwords(I even, I odd) {
    return _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
  }
  static I multiply_dwords(I a, I b) { return _mm512_mullo_epi32(a, b); }
  static F to_float(I a) { return _mm512_cvtepi32_ps(a); }
  // Stores the nearest integers (ties to even) as bytes and returns them. |x| < 128.
  static I store_bytes(int8_t* p, F x) {
    I integers = _mm512_cvtps_epi32(x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(integers));
    return integers;
  }
  static int32_t sum_dwords(I a) { return _mm512_reduce_add_epi32(a); }
  // Widens sixteen codes to words, of each four in the order 0, 2, 1, 3.
  static void spread_codes(const int8_t* codes, std::byte* words) {
    __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    wide = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(wide, 0xd8), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), wide);
  }
  // 2^(e - 127) for exponents e in [0, 254].
  static F power_from_bits(I exponents) {
    I bits = _mm512_slli_epi32(exponents, 23);
    return _mm512_castsi512_ps(_mm512_max_epi32(bits, _mm512_set1_epi32(0x400000)));
  }

  // Loads the first n < 2 kLanes bf16 as pairs; the others are zero.
  static I load_pairs_first(const BFloat16* p, int64_t n) {
    return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((uint32_t{1} << n) - 1), p);
  }
  // The low and the high bf16 of each dword.
  static F low_bf16(I pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
  static F high_bf16(I pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(~0xffff)));
  }
  static I even_bytes(I a) { return _mm512_and_si512(a, _mm512_set1_epi16(0xff)); }
  static I odd_bytes(I a) { return _mm512_srli_epi16(a, 8); }
  static I low_nibbles(I a) { return _mm512_and_si512(a, _mm512_set1_epi8(0xf)); }
  static I high_nibbles(I a) { return low_nibbles(_mm512_srli_epi16(a, 4)); }
  // table[a] for each byte of a, which must be below 16.
  static I look_up(const int8_t* table, I a) {
    __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), a);
  }
  // Converts an e4m3 code in each word to bf16.
  static I fp8_to_bf16(I codes) {
    I magnitude = _mm512_and_si512(codes, _mm512_set1_epi16(0x7f));
    I sign = _mm512_slli_epi16(_mm512_xor_si512(codes, magnitude), 8);
    I normal = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
    // Subnormal m is m * 2^-9, from a table of bf16.
    I subnormals = _mm512_broadcast_i32x4(
        _mm_setr_epi16(0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
    __mmask32 small = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
    I value = _mm512_mask_permutexvar_epi16(normal, small, magnitude, subnormals);
    return _mm512_or_si512(value, sign);
  }
  // Per dword: sum + the dot product of a's four unsigned and b's four signed bytes.
  static I dot4(I sum, I a, I b) {
    I b_even = _mm512_srai_epi16(_mm512_slli_epi16(b, 8), 8);
    I even = _mm512_madd_epi16(even_bytes(a), b_even);
    I odd = _mm512_madd_epi16(odd_bytes(a), _mm512_srai_epi16(b, 8));
    return _mm512_add_epi32(sum, _mm512_add_epi32(even, odd));
  }

  // The same for a below 128, whose products can be added in words.
  static I dot4_small(I sum, I a, I b) {
    I words = _mm512_maddubs_epi16(a, b);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(words, _mm512_set1_epi16(1)));
  }

  // Whether there is dot4_signed(), as in vec_avx2.h; not worth it where there is a dot4 of one
  // instruction, or no instruction that applies signs.
  static constexpr bool kMultipliesSigned = false;

  // Whether sums of products of unsigned and signed bytes are best kept in words, which the next
  // three do: products added in pairs; their sum; sum + pairs of words added.
  static constexpr bool kAddsWords = true;
  static I word_products(I a, I b) { return _mm512_maddubs_epi16(a, b); }
  // Returns x, computed before what follows: compilers would compute all products of a tile before
  // they add any, and run out of registers.
  static I in_order(I x) {
    asm volatile("" : "+v"(x));
    return x;
  }
  static I add_words(I a, I b) { return _mm512_add_epi16(a, b); }
  static I add_word_pairs(I sum, I words) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(words, _mm512_set1_epi16(1)));
  }
  // Per dword: the sum of the products of its two signed words.
  static I multiply_word_pairs(I a, I b) { return _mm512_madd_epi16(a, b); }
  static I join_bits(I a, I b) { return _mm512_or_si512(a, b); }
  // Shifts the bits of each byte left (right if negative), then applies `mask`.
  static I move_bits(I a, int left, int mask) {
    I moved = left >= 0 ? _mm512_slli_epi16(a, static_cast<unsigned>(left))
                        : _mm512_srli_epi16(a, static_cast<unsigned>(-left));
    return _mm512_and_si512(moved, _mm512_set1_epi8(static_cast<char>(mask)));
  }

 private:
  static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

  template <class T>
  static const __m256i* words(const T* p) {
    return reinterpret_cast<const __m256i*>(p);
  }
  template <class T>
  static __m256i* words(T* p) {
    return reinterpret_cast<__m256i*>(p);
  }

  template <class T>
  static __m128i sixteen_bytes(const T* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static F widen_int8(__m128i codes) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes)); }
  // Shifted into place, an e4m3 code is 2^-8 of its value as f16, including subnormals.
  static F widen_e4m3(__m128i codes) {
    __m256i places = _mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7);
    __m256i wanted = _mm256_set1_epi16(static_cast<int16_t>(0xbf80));
    return _mm512_cvtph_ps(_mm256_and_si256(places, wanted));
  }

  static F widen(__m256i bf16) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bf16), 16));
  }
  static __m256i halve(F x) { return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
  // As from_float<BFloat16>.
  static __m256i narrow(F x) {
    __m512i bits = _mm512_castps_si512(x);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  }
};

}  // namespace banyan::simd
