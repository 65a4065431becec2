// Quantisation of rows: error bounds, rounding, and independence from where work is split.
#include "quant/codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <vector>

#include "tensor/float_types.h"

namespace banyan::codes_test {
namespace {

struct Buffers {
  explicit Buffers(const RowsShape& shape)
      : codes(static_cast<size_t>(shape.rows * shape.columns)),
        scales(static_cast<size_t>(shape.rows * shape.groups())) {}

  QuantisedRows rows() { return {codes.data(), scales.data()}; }

  std::vector<uint8_t> codes;
  std::vector<float> scales;
};

// Values of a normal distribution, which trained weights are close to.
std::vector<float> normal_values(int64_t count, uint32_t seed, float deviation = 0.02f) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    double u = (random() + 0.5) / 0x1p32, v = (random() + 0.5) / 0x1p32;
    value = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v)) *
            deviation;
  }
  return values;
}

using Quantise = void (*)(const float*, const RowsShape&, const QuantisedRows&);
using Dequantise = void (*)(const QuantisedRows&, const RowsShape&, float*);

std::vector<float> round_trip(const std::vector<float>& x, const RowsShape& shape,
                              Quantise quantise, Dequantise dequantise) {
  Buffers buffers(shape);
  quantise(x.data(), shape, buffers.rows());
  std::vector<float> y(x.size());
  dequantise(buffers.rows(), shape, y.data());
  return y;
}

// Root of the mean squared error over that of the values.
double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double error = 0, square = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += std::pow(static_cast<double>(x[i]) - y[i], 2);
    square += std::pow(static_cast<double>(x[i]), 2);
  }
  return std::sqrt(error / square);
}

// Round to the nearest of 16 steps whose end is the group's largest value: the plain way, which
// other 4.5-bit formats take (an f16 scale for each 32 values).
std::vector<float> plain_int4(const std::vector<float>& x, int64_t group) {
  std::vector<float> y(x.size());
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(group)) {
    float largest = 0;
    for (size_t i = begin; i < begin + static_cast<size_t>(group); ++i) {
      if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
    }
    float inverse = largest == 0 ? 0 : -8 / largest;
    float scale = to_float(from_float<Float16>(largest / -8));
    for (size_t i = begin; i < begin + static_cast<size_t>(group); ++i) {
      y[i] = (std::min(15.0f, std::trunc(x[i] * inverse + 8.5f)) - 8) * scale;
    }
  }
  return y;
}

constexpr RowsShape kShape{.rows = 256, .columns = 256, .group = 32};

TEST(QuantisedCodes, ErrorsOfNormalWeightsAreBounded) {
  std::vector<float> x = normal_values(kShape.rows * kShape.columns, 1);
  auto error = [&](RowsShape shape, Quantise quantise, Dequantise dequantise) {
    return relative_error(x, round_trip(x, shape, quantise, dequantise));
  };
  RowsShape whole = kShape, block = kShape;
  whole.group = whole.columns;
  block.group = kFp8Block;
  EXPECT_LT(error(whole, quantise_int8, dequantise_int8), 0.0075);
  EXPECT_LT(error(kShape, quantise_int8, dequantise_int8), 0.0055);
  EXPECT_LT(error(block, quantise_fp8, dequantise_fp8), 0.028);
  EXPECT_LT(error(kShape, quantise_int4, dequantise_int4), 0.0815);
  EXPECT_LT(error(kShape, quantise_mxfp4, dequantise_mxfp4), 0.115);
}

TEST(QuantisedCodes, Int4BeatsTheLargestValueRuleAtTheSameSize) {
  for (uint32_t seed : {1u, 2u, 3u}) {
    std::vector<float> x = normal_values(kShape.rows * kShape.columns, seed);
    if (seed == 3) {  // heavier tails
      for (float& value : x) value *= 1 + std::fabs(value) * 30;
    }
    double ours = relative_error(x, round_trip(x, kShape, quantise_int4, dequantise_int4));
    double plain = relative_error(x, plain_int4(x, kShape.group));
    EXPECT_LT(ours, 0.96 * plain) << seed;
  }
}

TEST(QuantisedCodes, Int8IsWithinHalfAStep) {
  std::vector<float> x = normal_values(kShape.rows * kShape.columns, 4);
  Buffers buffers(kShape);
  quantise_int8(x.data(), kShape, buffers.rows());
  std::vector<float> y(x.size());
  dequantise_int8(buffers.rows(), kShape, y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::fabs(x[i] - y[i]), buffers.scales[i / 32] * 0.50001f);
  }
}

TEST(QuantisedCodes, Int4ScalesAreBFloat16AndTheGridIsExact) {
  RowsShape shape{.rows = 1, .columns = 32, .group = 32};
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i % 16 - 8) * -0.375f;
  Buffers buffers(shape);
  quantise_int4(x.data(), shape, buffers.rows());
  EXPECT_EQ(buffers.scales[0], -0.375f);
  std::vector<float> y(32);
  dequantise_int4(buffers.rows(), shape, y.data());
  EXPECT_EQ(x, y);

  std::vector<float> random = normal_values(4096, 5);
  Buffers more({.rows = 1, .columns = 4096, .group = 32});
  quantise_int4(random.data(), {.rows = 1, .columns = 4096, .group = 32}, more.rows());
  for (float scale : more.scales) EXPECT_EQ(to_float(from_float<BFloat16>(scale)), scale);
}

TEST(QuantisedCodes, Fp8KeepsEveryNumberThatItHas) {
  RowsShape shape{.rows = 1, .columns = 256, .group = 256};
  std::vector<uint8_t> codes(256);
  std::vector<float> values(256), scales(1, 1.0f);
  for (int i = 0; i < 256; ++i) codes[i] = (i & 0x7f) == 0x7f ? 0 : static_cast<uint8_t>(i);
  dequantise_fp8({codes.data(), scales.data()}, shape, values.data());
  EXPECT_EQ(values[1], 0x1p-9f);
  EXPECT_EQ(values[0x08], 0x1p-6f);
  EXPECT_EQ(values[0x38], 1.0f);
  EXPECT_EQ(values[0x7e], 448.0f);
  EXPECT_EQ(values[0xfe], -448.0f);
  for (int64_t begin : {0, 128}) {  // the blocks of 128 have 448 in them, so the scale is 1
    RowsShape half{.rows = 1, .columns = 128, .group = 128};
    Buffers buffers(half);
    quantise_fp8(values.data() + begin, half, buffers.rows());
    EXPECT_EQ(buffers.scales[0], 1.0f);
    for (int i = 0; i < 128; ++i) {
      bool zero = values[begin + i] == 0;  // whose sign may be lost
      EXPECT_TRUE(zero || buffers.codes[i] == codes[begin + i]) << begin + i;
    }
  }
}

TEST(QuantisedCodes, Fp8RoundsToNearestEven) {
  RowsShape shape{.rows = 1, .columns = 32, .group = 32};
  std::vector<float> x(32, 448.0f);
  x[0] = 1.0625f;     // between 1 and 1.125: even mantissa is 1
  x[1] = 1.1875f;     // between 1.125 and 1.25: even is 1.25
  x[2] = 0x1.8p-9f;   // between 1 and 2 units: 2 is even
  x[3] = 0x0.8p-9f;   // half a unit: 0
  x[4] = -0x1.fp-7f;  // just below the smallest normal number
  std::vector<float> y = round_trip(x, shape, quantise_fp8, dequantise_fp8);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 1.25f);
  EXPECT_EQ(y[2], 0x1p-8f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_EQ(y[4], -0x1p-6f);
}

TEST(QuantisedCodes, Fp8BlocksShareAScaleAndMayBeRagged) {
  RowsShape shape{.rows = 130, .columns = 160, .group = 32};  // blocks of 128 and 32 columns
  std::vector<float> x = normal_values(shape.rows * shape.columns, 6);
  x[0] = 44.8f;              // block (0, 0)
  x[129 * 160 + 150] = 448;  // block (1, 1)
  Buffers buffers(shape);
  quantise_fp8(x.data(), shape, buffers.rows());
  auto scale = [&](int64_t row, int64_t group) { return buffers.scales[row * 5 + group]; };
  for (int64_t row : {0, 77, 127}) {
    for (int64_t group = 0; group < 4; ++group) EXPECT_FLOAT_EQ(scale(row, group), 0.1f);
    EXPECT_LT(scale(row, 4), 0.01f);
  }
  EXPECT_LT(scale(128, 0), 0.01f);
  EXPECT_EQ(scale(128, 4), 1.0f);
  EXPECT_EQ(scale(129, 4), 1.0f);
}

TEST(QuantisedCodes, Mxfp4TakesTheNearestNumberAndTheBetterExponent) {
  RowsShape shape{.rows = 1, .columns = 32, .group = 32};
  const float numbers[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) x[i] = numbers[i % 8] * (i % 16 < 8 ? 0.25f : -0.25f);
  Buffers buffers(shape);
  quantise_mxfp4(x.data(), shape, buffers.rows());
  EXPECT_EQ(buffers.scales[0], 0.25f);
  std::vector<float> y(32);
  dequantise_mxfp4(buffers.rows(), shape, y.data());
  EXPECT_EQ(x, y);

  x.assign(32, 0.9f);
  x[0] = 7.9f;  // clipping to 6 costs more than what the others lose
  quantise_mxfp4(x.data(), shape, buffers.rows());
  EXPECT_EQ(buffers.scales[0], 2.0f);
  x.assign(32, 1.5f);
  x[0] = 6.1f;
  quantise_mxfp4(x.data(), shape, buffers.rows());
  EXPECT_EQ(buffers.scales[0], 1.0f);
}

TEST(QuantisedCodes, ZerosAndTinyNumbersBecomeZeros) {
  RowsShape shape{.rows = 2, .columns = 32, .group = 32};
  std::vector<float> x(64, 0.0f);
  std::fill(x.begin() + 32, x.end(), -1e-38f);
  std::vector<std::pair<Quantise, Dequantise>> formats = {{quantise_int8, dequantise_int8},
                                                          {quantise_int4, dequantise_int4},
                                                          {quantise_mxfp4, dequantise_mxfp4},
                                                          {quantise_fp8, dequantise_fp8}};
  for (auto [quantise, dequantise] : formats) {
    for (float y : round_trip(x, shape, quantise, dequantise)) EXPECT_EQ(y, 0.0f);
  }
}

TEST(QuantisedCodes, WorkMayBeCutBetweenRows) {
  RowsShape shape{.rows = 8, .columns = 64, .group = 32};
  std::vector<float> x = normal_values(shape.rows * shape.columns, 7);
  Buffers whole(shape), cut(shape);
  quantise_int4(x.data(), shape, whole.rows());
  for (int64_t row = 0; row < shape.rows; ++row) {
    RowsShape one = shape;
    one.rows = 1;
    quantise_int4(x.data() + row * 64, one,
                  {cut.codes.data() + row * 64, cut.scales.data() + row * 2});
  }
  EXPECT_EQ(whole.codes, cut.codes);
  EXPECT_EQ(whole.scales, cut.scales);
}

TEST(QuantisedCodes, Uint4SubtractsTheZeroPointOfItsGroup) {
  RowsShape shape{.rows = 1, .columns = 4, .group = 2};
  std::vector<uint8_t> codes = {0, 15, 3, 3}, zeros = {5, 15};
  std::vector<float> scales = {2, -0.5f}, x(4);
  dequantise_uint4({codes.data(), scales.data(), zeros.data()}, shape, x.data());
  EXPECT_EQ(x, (std::vector<float>{-10, 20, 6, 6}));
}

TEST(QuantisedCodes, E8m0HasItsSmallestAndLargestPowers) {
  EXPECT_EQ(e8m0_scale(0), 0x1p-127f);
  EXPECT_EQ(e8m0_scale(127), 1.0f);
  EXPECT_EQ(e8m0_scale(254), 0x1p127f);
}

}  // namespace
}  // namespace banyan::codes_test
