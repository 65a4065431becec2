// The arithmetic of one wgmma of bf16 or f16 on a Hopper tensor core, emulated on the host with
// integers: the oracle for the products in this folder.
//
// The model (MMA-Sim, arXiv 2511.10909): one step aligns sixteen exact products and the accumulator
// to the largest exponent among them. It truncates each after kFractionBits bits, adds the integers
// and rounds the sum toward zero to f32. The result does not depend on the position of a row, on n
// or on the order of operands. tools/gpu/probe.cu checks this on a GPU.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "tensor/float_types.h"

namespace banyan::cuda {

inline constexpr int kWgmmaDepth = 16;    // products per step
inline constexpr int kFractionBits = 25;  // bits kept below the largest exponent

// significand * 2^exponent; the format's leading bit has weight 2^top.
struct Term {
  int64_t significand = 0;  // signed
  int exponent = 0;
  int top = 0;
};

// Whether an f32 is an infinity or a NaN.
constexpr bool is_special(uint32_t bits) {
  return (bits & 0x7f800000u) == 0x7f800000u;
}

constexpr Term term_of_f32(float x, int fraction_bits = 23) {
  auto bits = std::bit_cast<uint32_t>(x);
  int field = static_cast<int>(bits >> 23 & 0xff);
  int64_t fraction = bits & 0x7fffff;
  int64_t significand = field == 0 ? fraction : fraction | 0x800000;
  int top = (field == 0 ? 1 : field) - 127;
  significand >>= 23 - fraction_bits;
  return {bits >> 31 != 0 ? -significand : significand, top - fraction_bits, top};
}

// An operand as f32, exactly.
constexpr float f32_of(BFloat16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}
constexpr float f32_of(Float16 x) {
  uint32_t field = x.bits >> 10 & 0x1fu, fraction = x.bits & 0x3ffu;
  if (field == 0) {
    auto magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return x.bits >> 15 != 0 ? -magnitude : magnitude;
  }
  uint32_t sign = static_cast<uint32_t>(x.bits >> 15) << 31;
  return std::bit_cast<float>(sign | (field == 31 ? 255 : field + 112) << 23 | fraction << 13);
}
constexpr bool is_special(BFloat16 x) {
  return (x.bits & 0x7f80u) == 0x7f80u;
}
constexpr bool is_special(Float16 x) {
  return (x.bits & 0x7c00u) == 0x7c00u;
}

// An operand that is not special.
constexpr Term term_of(BFloat16 x) {
  return term_of_f32(f32_of(x), 7);
}
constexpr Term term_of(Float16 x) {
  int field = x.bits >> 10 & 0x1f;
  int64_t fraction = x.bits & 0x3ff, significand = field == 0 ? fraction : fraction | 0x400;
  int top = (field == 0 ? 1 : field) - 15;
  return {x.bits >> 15 != 0 ? -significand : significand, top - 10, top};
}

// Exact: significands have 8 or 11 bits.
template <class T>
constexpr Term product_term(T a, T b) {
  Term x = term_of(a), y = term_of(b);
  return {x.significand * y.significand, x.exponent + y.exponent, x.top + y.top};
}

// The term in units of 2^unit, truncated toward zero.
constexpr int64_t align(const Term& term, int unit) {
  int shift = unit - term.exponent;
  int64_t magnitude = term.significand < 0 ? -term.significand : term.significand;
  magnitude = shift <= 0 ? magnitude << -shift : shift < 63 ? magnitude >> shift : 0;
  return term.significand < 0 ? -magnitude : magnitude;
}

// sum * 2^unit as f32, rounded toward zero; overflows to infinity.
constexpr float round_toward_zero(int64_t sum, int unit) {
  if (sum == 0) return 0;
  uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  int top = 63 - std::countl_zero(magnitude) + unit;  // exponent of the leading bit
  int last = (top < -126 ? -126 : top) - 23;          // weight of an f32's last bit
  uint32_t sign = sum < 0 ? 0x80000000u : 0;
  if (top > 127) return std::bit_cast<float>(sign | 0x7f800000u);
  int shift = last - unit;
  uint64_t significand = shift <= 0 ? magnitude << -shift : shift < 64 ? magnitude >> shift : 0;
  uint32_t field = top < -126 ? 0 : static_cast<uint32_t>(top + 127);
  return std::bit_cast<float>(sign | field << 23 |
                              (static_cast<uint32_t>(significand) & 0x7fffffu));
}

// Infinity or NaN if an operand is one, else 0. Operands are given as f32 or f64.
template <class X>
constexpr float special_sum(float accumulator, const X* a, const X* b) {
  auto is_special_value = [](X x) { return !(x - x == 0); };
  float sum = is_special_value(accumulator) ? accumulator : 0;
  for (int i = 0; i < kWgmmaDepth; ++i) {
    if (is_special_value(a[i]) || is_special_value(b[i])) sum += static_cast<float>(a[i] * b[i]);
  }
  return sum != sum ? std::bit_cast<float>(0x7fffffffu) : sum;
}

// accumulator + the sum over i < kWgmmaDepth of a[i] * b[i], as one wgmma computes it. Zero terms
// do not count for the largest exponent.
template <class T>
constexpr float wgmma_step(float accumulator, const T* a, const T* b,
                           int fraction_bits = kFractionBits) {
  float x[kWgmmaDepth], y[kWgmmaDepth];
  for (int i = 0; i < kWgmmaDepth; ++i) x[i] = f32_of(a[i]), y[i] = f32_of(b[i]);
  float special = special_sum(accumulator, x, y);
  if (special != 0) return special;
  Term terms[kWgmmaDepth + 1];
  int top = std::numeric_limits<int>::min();
  for (int i = 0; i <= kWgmmaDepth; ++i) {
    terms[i] = i < kWgmmaDepth ? product_term(a[i], b[i]) : term_of_f32(accumulator);
    if (terms[i].significand != 0 && terms[i].top > top) top = terms[i].top;
  }
  int64_t sum = 0;
  for (const Term& term : terms) {
    if (term.significand != 0) sum += align(term, top - fraction_bits);
  }
  return sum == 0 ? 0 : round_toward_zero(sum, top - fraction_bits);
}

// The sum over `k` columns from zero, sixteen at a time; k is a multiple of 16.
template <class T>
constexpr float wgmma_sum(const T* a, const T* b, int64_t k) {
  float sum = 0;
  for (int64_t i = 0; i < k; i += kWgmmaDepth) sum = wgmma_step(sum, a + i, b + i);
  return sum;
}

}  // namespace banyan::cuda
