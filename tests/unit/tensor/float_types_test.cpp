// The 16-bit types against their arithmetic definition, over every bit pattern.
#include "tensor/float_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace banyan::float_types_test {
namespace {

// The value that sign, exponent and fraction fields mean (IEEE 754-2019, 3.4), in f64.
double meaning(uint16_t bits, int fraction_bits) {
  int exponent_bits = 15 - fraction_bits;
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  int fraction = bits & ((1 << fraction_bits) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class T>
constexpr int kFractionBits = 0;
template <>
constexpr int kFractionBits<BFloat16> = 7;
template <>
constexpr int kFractionBits<Float16> = 10;

template <class T>
class FloatTypes : public ::testing::Test {};
using Types = ::testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(FloatTypes, Types);

TYPED_TEST(FloatTypes, EveryPatternMeansItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    TypeParam x{static_cast<uint16_t>(bits)};
    double expected = meaning(x.bits, kFractionBits<TypeParam>);
    float value = to_float(x);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(to_float(from_float<TypeParam>(value)))) << bits;
      continue;
    }
    ASSERT_EQ(value, expected) << bits;
    ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    ASSERT_EQ(from_float<TypeParam>(value).bits, bits);
  }
}

// Between neighbours: the middle goes to the even one, anything beside it to the nearer one.
TYPED_TEST(FloatTypes, RoundsToNearestWithTiesToEven) {
  for (uint32_t sign : {0u, 0x8000u}) {
    for (uint32_t bits = 0;; ++bits) {
      auto low = static_cast<uint16_t>(sign | bits), high = static_cast<uint16_t>(low + 1);
      double below = meaning(low, kFractionBits<TypeParam>);
      double above = meaning(high, kFractionBits<TypeParam>);
      if (std::isinf(above)) break;
      auto middle = static_cast<float>((below + above) / 2);  // exact: an f32 has more bits
      uint16_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(from_float<TypeParam>(middle).bits, even) << bits;
      float toward_zero = std::nextafter(middle, 0.0f);
      float outward = std::nextafter(middle, sign ? -INFINITY : INFINITY);
      ASSERT_EQ(from_float<TypeParam>(toward_zero).bits, low) << bits;
      ASSERT_EQ(from_float<TypeParam>(outward).bits, high) << bits;
    }
  }
}

// Half a unit beyond the largest finite number and more is infinite, less is that number.
TYPED_TEST(FloatTypes, OverflowsAtHalfAUnitBeyondTheLargest) {
  constexpr int kBits = kFractionBits<TypeParam>;
  auto infinity = static_cast<uint16_t>(((1 << (15 - kBits)) - 1) << kBits);
  auto largest = static_cast<uint16_t>(infinity - 1);
  double unit = meaning(largest, kBits) - meaning(static_cast<uint16_t>(largest - 1), kBits);
  auto limit = static_cast<float>(meaning(largest, kBits) + unit / 2);
  EXPECT_EQ(from_float<TypeParam>(limit).bits, infinity);
  EXPECT_EQ(from_float<TypeParam>(std::nextafter(limit, 0.0f)).bits, largest);
  EXPECT_EQ(from_float<TypeParam>(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(from_float<TypeParam>(-INFINITY).bits, infinity | 0x8000);
}

TYPED_TEST(FloatTypes, KeepsEveryNaNANaN) {
  for (uint32_t payload : {1u, 0x1fffu, 0x8000u, 0x400000u, 0x7fffffu}) {
    for (uint32_t sign : {0u, 0x80000000u}) {
      float nan = std::bit_cast<float>(sign | 0x7f800000u | payload);
      EXPECT_TRUE(std::isnan(to_float(from_float<TypeParam>(nan)))) << payload;
    }
  }
}

TEST(Float8E4M3, RoundsToTheNearestAndSaturates) {
  for (int code = 0; code < 0x7f; ++code) {
    auto next = Float8E4M3{static_cast<uint8_t>(code + 1)};
    float x = to_float(Float8E4M3{static_cast<uint8_t>(code)});
    EXPECT_EQ(from_float<Float8E4M3>(x).bits, code);
    EXPECT_EQ(from_float<Float8E4M3>(-x).bits, code | 0x80);
    if (code == 0x7e) break;  // the largest
    float middle = (x + to_float(next)) / 2;
    EXPECT_EQ(from_float<Float8E4M3>(middle).bits, code + code % 2) << x;
    EXPECT_EQ(from_float<Float8E4M3>(std::nextafter(middle, 0.0f)).bits, code) << x;
    EXPECT_EQ(from_float<Float8E4M3>(std::nextafter(middle, INFINITY)).bits, code + 1) << x;
  }
  EXPECT_EQ(from_float<Float8E4M3>(1e30f).bits, 0x7e);
  EXPECT_EQ(from_float<Float8E4M3>(-INFINITY).bits, 0xfe);
  EXPECT_TRUE(std::isnan(to_float(from_float<Float8E4M3>(NAN))));
}

}  // namespace
}  // namespace banyan::float_types_test
