// The arithmetic and layouts that CUDA kernels share with the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "kernels/cuda/shared_layout.h"
#include "kernels/cuda/wgmma_arithmetic.h"

namespace banyan::cuda::cuda_host_test {
namespace {

using Operand = std::array<BFloat16, kWgmmaDepth>;

constexpr BFloat16 bf16(float x) {
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)};
}

float step(float accumulator, const Operand& a, const Operand& b) {
  return wgmma_step(accumulator, a.data(), b.data());
}

// One product, the others are zero.
float step(float accumulator, float a, float b) {
  return step(accumulator, Operand{bf16(a)}, Operand{bf16(b)});
}

// Rounds toward zero, as no cast does.
float toward_zero(long double x) {
  auto y = static_cast<float>(x);
  bool beyond = std::fabs(static_cast<long double>(y)) > std::fabs(x);
  return beyond ? std::nextafter(y, 0.0f) : y;
}

TEST(WgmmaArithmetic, EqualsTheExactSumTowardZeroWhereNoBitIsCutOff) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> significand(-255, 255), exponent(-9, -7);
  for (int round = 0; round < 20000; ++round) {
    Operand a, b;
    // A multiple of 2^-18, which 25 bits after the largest exponent (4 at most) reach.
    auto accumulator = static_cast<float>(std::ldexp(significand(random) * 257, -18));
    long double sum = accumulator;
    for (int i = 0; i < kWgmmaDepth; ++i) {
      float x = std::ldexp(static_cast<float>(significand(random)), exponent(random));
      float y = std::ldexp(static_cast<float>(significand(random)), exponent(random));
      a[static_cast<size_t>(i)] = bf16(x);
      b[static_cast<size_t>(i)] = bf16(y);
      sum += static_cast<long double>(x) * y;
    }
    ASSERT_EQ(step(accumulator, a, b), toward_zero(sum)) << round;
  }
}

TEST(WgmmaArithmetic, CutsTermsOffAfter25Bits) {
  EXPECT_EQ(step(1, 0x1p-13f, 0x1p-13f), 1);              // 2^-26 is lost, ...
  EXPECT_EQ(step(1, -0x1p-13f, 0x1p-13f), 1);             // ... below zero as well
  EXPECT_EQ(step(1, -0x1p-12f, 0x1p-13f), 1 - 0x1p-24f);  // 2^-25 is not
  EXPECT_EQ(step(1, 0x1p-12f, 0x1p-13f), 1);              // but rounding drops it
  Operand quarters{bf16(0x1p-12f), bf16(0x1p-12f), bf16(0x1p-12f), bf16(0x1p-12f)};
  Operand ones;
  ones.fill(bf16(0x1p-13f));
  EXPECT_EQ(step(1, quarters, ones), 1 + 0x1p-23f);  // unless others make it up
}

TEST(WgmmaArithmetic, DoesNotDependOnTheOrderWithinAStep) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  Operand a, b;
  std::array<size_t, kWgmmaDepth> order;
  for (size_t i = 0; i < order.size(); ++i) {
    a[i] = bf16(normal(random));
    b[i] = bf16(std::exp2(8 * normal(random)));
    order[i] = i;
  }
  float expected = step(0.3f, a, b);
  for (int round = 0; round < 100; ++round) {
    std::ranges::shuffle(order, random);
    Operand x, y;
    for (size_t i = 0; i < order.size(); ++i) x[i] = a[order[i]], y[i] = b[order[i]];
    ASSERT_EQ(step(0.3f, x, y), expected);
    ASSERT_EQ(step(0.3f, y, x), expected);
  }
}

TEST(WgmmaArithmetic, ZerosAndSubnormalsAndSpecialValues) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(step(0x1p-30f, 0.0f, 0x1p120f), 0x1p-30f);  // no say in the largest exponent
  EXPECT_EQ(step(0, 0x1p-133f, 1), 0x1p-133f);          // the least bf16
  EXPECT_EQ(step(0, -0x1p-70f, 0x1p-79f), -0x1p-149f);  // the least f32
  EXPECT_EQ(step(0, 0x1p-75f, 0x1p-75f), 0);
  EXPECT_EQ(step(0, 0x1p127f, 2), kInfinity);
  EXPECT_EQ(step(-kInfinity, 1, 1), -kInfinity);
  EXPECT_EQ(std::bit_cast<uint32_t>(step(kInfinity, -kInfinity, 1)), 0x7fffffffu);
  EXPECT_EQ(std::bit_cast<uint32_t>(step(0, kInfinity, 0)), 0x7fffffffu);
  EXPECT_EQ(step(1, 1, -1), 0);
  EXPECT_FALSE(std::signbit(step(1, 1, -1)));
}

TEST(WgmmaArithmetic, OfF16KeepsElevenBitsAndSubnormals) {
  auto product = [](float x, float y, float accumulator = 0) {
    std::array<Float16, kWgmmaDepth> a{from_float<Float16>(x)}, b{from_float<Float16>(y)};
    return wgmma_step(accumulator, a.data(), b.data());
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(product(1 + 0x1p-10f, 1 + 0x1p-10f), 1 + 0x1p-9f + 0x1p-20f);
  EXPECT_EQ(product(65504, -65504), -65504.0f * 65504.0f);
  EXPECT_EQ(product(0x1p-24f, 0x1p-24f), 0x1p-48f);
  // The exponent of a subnormal is that of the least normal number: bits end 25 below it.
  EXPECT_EQ(product(0x1p-24f, 1, 0x1p-39f), 0x1p-24f + 0x1p-39f);
  EXPECT_EQ(product(0x1p-24f, 1, 0x1p-40f), 0x1p-24f);
  EXPECT_EQ(product(kInfinity, 2), kInfinity);
  EXPECT_EQ(std::bit_cast<uint32_t>(product(kInfinity, 0)), 0x7fffffffu);
}

TEST(WgmmaArithmetic, SumsStepAfterStep) {
  std::array<BFloat16, 64> a, b;
  a.fill(bf16(1));
  b.fill(bf16(0x1p-13f));
  a[0] = bf16(0x1p11f);  // 2^-2 first; steps of sixteen times 2^-13 add to it exactly
  EXPECT_EQ(wgmma_sum(a.data(), b.data(), 64), 0x1p-2f + 63 * 0x1p-13f);
}

// Eight rows of one column of chunks lie in eight different chunks of the banks' 128 bytes.
TEST(SharedLayout, SwizzleIsAPermutationWithoutConflicts) {
  std::set<uint32_t> places;
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t column = 0; column < kTileRowBytes; column += 16) {
      uint32_t place = swizzled(row, column);
      EXPECT_EQ(place % 16, 0u);
      EXPECT_EQ(place / kTileRowBytes, row);
      EXPECT_EQ(swizzled(row, column + 14), place + 14);
      places.insert(place);
    }
  }
  EXPECT_EQ(places.size(), 16u * 8);
  for (uint32_t chunk = 0; chunk < 8; ++chunk) {
    std::set<uint32_t> banks;
    for (uint32_t row = 0; row < 8; ++row) banks.insert(swizzled(row, chunk * 16) % kTileRowBytes);
    EXPECT_EQ(banks.size(), 8u);
  }
}

TEST(SharedLayout, DescriptorsNameTheTile) {
  uint64_t descriptor = tile_descriptor(0x8400);
  EXPECT_EQ(descriptor & 0x3fff, 0x840u);
  EXPECT_EQ(descriptor >> 32 & 0x3fff, 64u);  // 1,024 bytes to the next eight rows
  EXPECT_EQ(descriptor >> 62, 1u);            // swizzle of 128 bytes
  EXPECT_EQ((descriptor + kDescriptorStep) & 0x3fff, (0x8400u + 32) >> 4);
}

}  // namespace
}  // namespace banyan::cuda::cuda_host_test
