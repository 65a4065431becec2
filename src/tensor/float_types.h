// The 16- and 8-bit floating-point types as plain integers with exact conversions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace banyan {

struct BFloat16 {
  uint16_t bits = 0;
};

struct Float16 {
  uint16_t bits = 0;
};

// e4m3fn: bias 7, no infinity, NaN is 0x7f and 0xff, the largest number is 448.
struct Float8E4M3 {
  uint8_t bits = 0;
};

inline float to_float(float x) {
  return x;
}

inline float to_float(int8_t x) {
  return static_cast<float>(x);
}

inline float to_float(BFloat16 x) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16);
}

inline float to_float(Float16 x) {
  uint32_t sign = (uint32_t{x.bits} & 0x8000u) << 16;
  uint32_t exponent = (x.bits >> 10) & 0x1fu;
  uint32_t mantissa = x.bits & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa units of 2^-24
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  uint32_t biased = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (biased << 23) | (mantissa << 13));
}

inline float to_float(Float8E4M3 x) {
  uint32_t sign = (uint32_t{x.bits} & 0x80u) << 24;
  uint32_t magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  // With e4m3's bits in an f32, the value is 2^-120 of the original, subnormals included.
  return std::bit_cast<float>(sign | (magnitude << 20)) * 0x1p120f;
}

// Round to nearest, ties to even; NaN stays NaN. What is beyond the largest e4m3 becomes that.
template <class T>
T from_float(float x);

template <>
inline float from_float<float>(float x) {
  return x;
}

template <>
inline BFloat16 from_float<BFloat16>(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
inline Float16 from_float<Float16>(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 leaves the value in units of 2^-24
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

template <>
inline Float8E4M3 from_float<Float8E4M3>(float x) {
  uint32_t sign = (std::bit_cast<uint32_t>(x) >> 24) & 0x80u;
  float magnitude = std::fabs(x);
  if (std::isnan(x)) return {static_cast<uint8_t>(sign | 0x7fu)};
  if (magnitude > 448) magnitude = 448;
  uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  uint32_t normal = ((bits + 0x7ffffu + ((bits >> 20) & 1u)) >> 20) - (120u << 3);
  // Subnormals are multiples of 2^-9, the unit in the last place of 2^14.
  uint32_t subnormal = std::bit_cast<uint32_t>(magnitude + 0x1p14f) - 0x46800000u;
  return {static_cast<uint8_t>(sign | (magnitude < 0x1p-6f ? subnormal : normal))};
}

}  // namespace banyan
