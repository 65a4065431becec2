// Functions of the kernels in this folder. They are made of IEEE operations in a fixed order, so
// that a GPU and the emulation on a host compute the same bits.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/cuda/host_device.h"

namespace banyan::cuda {

inline constexpr float kLowest = std::numeric_limits<float>::lowest();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

BANYAN_HOST_DEVICE constexpr bool is_nan(float x) {
  return x != x;
}

BANYAN_HOST_DEVICE constexpr bool is_finite(float x) {
  return (std::bit_cast<uint32_t>(x) & 0x7f800000u) != 0x7f800000u;
}

BANYAN_HOST_DEVICE constexpr float not_a_number() {
  return std::bit_cast<float>(0x7fc00000u);
}

BANYAN_HOST_DEVICE constexpr float floor(float x) {  // of magnitudes below 2^63
  auto whole = static_cast<float>(static_cast<int64_t>(x));
  return whole > x ? whole - 1 : whole;
}

BANYAN_HOST_DEVICE constexpr float magnitude(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7fffffffu);
}

BANYAN_HOST_DEVICE constexpr float with_sign_of(float magnitude, float sign) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) |
                              (std::bit_cast<uint32_t>(sign) & 0x80000000u));
}

BANYAN_HOST_DEVICE constexpr int64_t least(int64_t a, int64_t b) {
  return b < a ? b : a;
}

// Of numbers from 0 to 2^32: a GPU divides larger ones in a call, with registers spilled.
BANYAN_HOST_DEVICE constexpr int64_t quotient(int64_t x, int64_t y) {
  return static_cast<uint32_t>(x) / static_cast<uint32_t>(y);
}
BANYAN_HOST_DEVICE constexpr int64_t remainder(int64_t x, int64_t y) {
  return static_cast<uint32_t>(x) % static_cast<uint32_t>(y);
}

// The bits of x where the mask has ones, and those of y where it has zeros.
BANYAN_HOST_DEVICE inline uint32_t select_bits(uint32_t mask, uint32_t x, uint32_t y) {
#ifdef __CUDA_ARCH__  // or it takes two instructions
  uint32_t selected;
  asm("lop3.b32 %0, %1, %2, %3, 0xd8;" : "=r"(selected) : "r"(y), "r"(x), "r"(mask));
  return selected;
#else
  return (x & mask) | (y & ~mask);
#endif
}

BANYAN_HOST_DEVICE constexpr float power_of_two(int exponent) {  // of a normal number
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// e^x within 2 ulp: 0 below -104, infinity above 88.8, NaN for NaN. The method is that of
// kernels/vector/vec_math.h.
BANYAN_HOST_DEVICE constexpr float exp(float x) {
  constexpr float kToInteger = 0x1.8p23f;  // a number this large has no fraction
  if (is_nan(x)) return x;
  x = x < -104 ? -104 : x > 89 ? 89 : x;
  float n = (x * 0x1.715476p+0f + kToInteger) - kToInteger;
  float r = x - n * 0x1.62e4p-1f;  // few bits, so that the product is exact
  r -= n * 0x1.7f7d1cp-20f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int whole = static_cast<int>(n), half = whole >> 1;
  return p * power_of_two(half) * power_of_two(whole - half);
}

BANYAN_HOST_DEVICE constexpr float sigmoid(float x) {
  return 1.0f / (1.0f + exp(-x));
}

// cap * tanh(x / cap), within 2 ulp of `cap`.
BANYAN_HOST_DEVICE constexpr float soften(float x, float cap) {
  float e = exp(magnitude(x) * (-2 / cap));
  return with_sign_of((1 - e) / (1 + e) * cap, x);
}

// ln x of a positive normal number, within 2 ulp of f64: see race_time.
BANYAN_HOST_DEVICE constexpr double log(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  auto bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m >= 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++exponent;
  }
  double s = (m - 1) / (m + 1), square = s * s, sum = 0;
  for (int term = 21; term >= 3; term -= 2) sum = (sum + 1.0 / term) * square;
  return exponent * kLn2 + 2 * (s + s * sum);
}

// ln(1 + e^z), which equals z once e^z dominates the 1.
BANYAN_HOST_DEVICE constexpr float softplus(float z) {
  if (z > 20 || is_nan(z)) return z;
  double e = exp(z);
  if (e < 0x1p-12) return static_cast<float>(e - e * e * (0.5 - e * (1.0 / 3)));
  return static_cast<float>(log(1 + e));
}

struct CosSin {
  float cos, sin;
};

// Of an angle below 2^31, each rounded from f64: pi / 2 is split in three, so that its multiples
// by the first two parts are exact.
BANYAN_HOST_DEVICE constexpr CosSin cos_sin(float angle) {
  constexpr double kToInteger = 0x1.8p52;
  double x = angle;
  double n = (x * 0x1.45f306dc9c883p-1 + kToInteger) - kToInteger;
  double r = x - n * 0x1.921fbp0;
  r -= n * 0x5.4442p-24;
  r -= n * 0xd.18469898cc51p-44;
  double square = r * r, sin = 0, cos = 0;
  for (int term = 15; term >= 3; term -= 2) sin = (1 - sin) * square / (term * (term - 1));
  for (int term = 16; term >= 2; term -= 2) cos = (1 - cos) * square / (term * (term - 1));
  auto s = static_cast<float>(r - r * sin), c = static_cast<float>(1 - cos);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

BANYAN_HOST_DEVICE inline float root(float x) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

BANYAN_HOST_DEVICE inline float fused(float x, float y, float z) {  // x y + z, rounded once
#ifdef __CUDA_ARCH__
  return __fmaf_rn(x, y, z);
#else
  return __builtin_fmaf(x, y, z);
#endif
}

}  // namespace banyan::cuda
