// Quantised rows of states: a row's codes depend only on the row, and errors stay within the
// header's bounds.
#include "kernels/state_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace banyan::state_rows_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

template <class S>
std::vector<S> stored(const std::vector<float>& x, int64_t split = 0) {
  RowShape shape = {.width = std::ssize(x), .split = split};
  std::vector<S> row(static_cast<size_t>(shape.quantised_bytes()), std::bit_cast<S>(uint8_t{0xa5}));
  store_row(x.data(), shape, row.data());
  return row;
}

template <class S>
std::vector<float> round_trip(const std::vector<float>& x, int64_t split = 0) {
  RowShape shape = {.width = std::ssize(x), .split = split};
  std::vector<S> row = stored<S>(x, split);
  RowValues<S> values(row.data(), shape);
  std::vector<float> y;
  for (int64_t c = 0; c < shape.width; ++c) y.push_back(values[c]);
  return y;
}

template <class S>
class StateRows : public testing::Test {};
using Codes = testing::Types<int8_t, Float8E4M3>;
TYPED_TEST_SUITE(StateRows, Codes);

TEST(StateRows, TakeTheBytesThatTheHeaderSays) {
  EXPECT_EQ(state_row_bytes(DType::kI8, {.width = 128}), 132);
  EXPECT_EQ(state_row_bytes(DType::kF8E4M3, {.width = 64}), 68);
  EXPECT_EQ(state_row_bytes(DType::kF8E4M3, {.width = 576, .split = 512}), 584);
  EXPECT_EQ(state_row_bytes(DType::kI8, {.width = 13}), 20);
  EXPECT_EQ(state_row_bytes(DType::kBF16, {.width = 576, .split = 512}), 1152);
  EXPECT_EQ(state_row_bytes(DType::kF32, {.width = 13}), 52);
}

TYPED_TEST(StateRows, AreOffByNoMoreThanTheirBound) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  for (float scale : {1e-25f, 1e-6f, 1.0f, 300.0f, 1e30f}) {
    for (int64_t width : {1, 3, 16, 80, 257}) {
      std::vector<float> x(static_cast<size_t>(width));
      for (float& value : x) value = normal(engine) * scale;
      std::vector<float> y = round_trip<TypeParam>(x);
      float largest = 0;
      for (float value : x) largest = std::max(largest, std::fabs(value));
      for (size_t c = 0; c < x.size(); ++c) {
        double off = std::fabs(double{x[c]} - y[c]), bound = double{largest} / 127 / 2 * 1.0001;
        if (std::is_same_v<TypeParam, Float8E4M3>) {
          bound = std::max(std::fabs(double{x[c]}) / 16, double{largest} / 224 * 0x1p-10);
        }
        EXPECT_LE(off, bound) << x[c] << " of " << largest;
      }
    }
  }
}

TYPED_TEST(StateRows, OfZerosAndOfNextToNothingAreZeros) {
  for (float tiny : {0.0f, -0.0f, 1e-45f, -1e-38f, 0x1p-101f}) {
    for (float value : round_trip<TypeParam>({tiny, 0, -tiny, tiny})) EXPECT_EQ(value, 0) << tiny;
  }
  EXPECT_GT(round_trip<TypeParam>({0x1p-100f})[0], 0);
}

TYPED_TEST(StateRows, KeepTheLargestNumbersFinite) {
  std::vector<float> y = round_trip<TypeParam>({kLargest, -kLargest, 1e38f, 0});
  EXPECT_FLOAT_EQ(y[0], 0x1p127f);
  EXPECT_FLOAT_EQ(y[1], -0x1p127f);
  EXPECT_NEAR(y[2] / 1e38f, 1, 1.0 / 16);
  EXPECT_EQ(y[3], 0);
}

TYPED_TEST(StateRows, WithWhatIsNoNumberAreNoNumbers) {
  for (float bad : {std::nanf(""), -std::nanf("1"), kInfinity, -kInfinity}) {
    for (float value : round_trip<TypeParam>({1, bad, 0, -3})) EXPECT_TRUE(std::isnan(value));
    std::vector<float> parts = round_trip<TypeParam>({1, bad, 5, -3}, 2);
    EXPECT_TRUE(std::isnan(parts[0]) && std::isnan(parts[1])) << bad;
    EXPECT_TRUE(std::isfinite(parts[2]) && std::isfinite(parts[3])) << bad;
  }
}

TYPED_TEST(StateRows, OfTwoPartsHaveAScaleForEach) {
  std::vector<float> x = {0.01f, -0.02f, 0.015f, 100, -200, 50};
  std::vector<float> y = round_trip<TypeParam>(x, 3);
  for (size_t c = 0; c < x.size(); ++c) EXPECT_NEAR(y[c] / x[c], 1, 1.0 / 16) << c;
  EXPECT_EQ(round_trip<TypeParam>({x.begin(), x.begin() + 3}),
            std::vector<float>(y.begin(), y.begin() + 3));
}

TYPED_TEST(StateRows, SetEveryByte) {
  std::vector<float> x = {1, -2, 3, 4, 5};
  auto bytes = [](const std::vector<TypeParam>& row) {
    std::vector<uint8_t> all;
    for (TypeParam code : row) all.push_back(std::bit_cast<uint8_t>(code));
    return all;
  };
  std::vector<uint8_t> row = bytes(stored<TypeParam>(x, 2));
  ASSERT_EQ(row.size(), 16u);
  EXPECT_EQ((std::vector<uint8_t>{row.begin() + 5, row.begin() + 8}), std::vector<uint8_t>(3));
  for (uint8_t byte : row) EXPECT_NE(byte, 0xa5);
}

TEST(StateRows, RoundInt8ToTheNearestAndTiesToEven) {
  std::vector<int8_t> row = stored<int8_t>({127, 0.5f, 1.5f, -2.5f, 0.51f, -126.6f});
  EXPECT_EQ((std::vector<int8_t>{row.begin(), row.begin() + 6}),
            (std::vector<int8_t>{127, 0, 2, -2, 1, -127}));
}

// So a row that is read and written again is the same.
TEST(StateRows, ScaleFp8ByPowersOfTwo) {
  for (float largest : {448.0f, 448.1f, 1.75f, 1.7500001f, 3e-20f}) {
    std::vector<float> x = {largest, -largest / 3, largest / 1000};
    std::vector<float> once = round_trip<Float8E4M3>(x);
    EXPECT_EQ(round_trip<Float8E4M3>(once), once);
    std::vector<Float8E4M3> row = stored<Float8E4M3>(x);
    int exponent = 0;
    float scale = row_scale(row.data(), {.width = 3}, 0);
    EXPECT_EQ(std::frexp(scale, &exponent), 0.5f);
    EXPECT_LE(largest, 448 * scale);
    EXPECT_GT(largest, 224 * scale);
  }
}

}  // namespace
}  // namespace banyan::state_rows_test
