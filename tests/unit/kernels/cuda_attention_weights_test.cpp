// The weights of keys (kernels/cuda/tensor_attention.h) against powers of two in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/tensor_attention.h"
#include "tensor/float_types.h"

namespace banyan::cuda::cuda_attention_weights_test {
namespace {

// The largest relative error over all fractions that a weight can have.
template <class T>
double largest_error_of_fractions() {
  EXPECT_EQ(power_of_fraction<T>(1), 1);
  double largest = 0;
  for (uint32_t i = 0; i < 1u << 14; ++i) {
    float t = 1 + static_cast<float>(i) / (1 << 14), p = power_of_fraction<T>(t);
    EXPECT_GE(p, 1) << t;
    EXPECT_LT(p, 2) << t;
    largest = std::max(largest, std::abs(p / std::exp2(double{t} - 1) - 1));
  }
  return largest;
}

// Weights of scores from 8 above the maximum to 126 below it, after a maximum of so much.
template <class T>
double largest_error_after(float max) {
  RowMax<T> row;
  row.raise(max);
  constexpr float kFactor = 0.125f;
  double largest = 0;
  for (int i = -4 * 8; i < 4 * 126; ++i) {
    float score = (row.exponent - static_cast<float>(i) * 0.24f) / kFactor;
    double exact = std::exp2(double{score} * double{kFactor} - double{row.exponent});
    largest = std::max(largest, std::abs(weight_of<T>(score, kFactor, row.offset()) / exact - 1));
  }
  return largest;
}

TEST(AttentionWeights, AreWithinWhatTheirTypeCanTell) {
  EXPECT_LT(largest_error_of_fractions<BFloat16>(), 0x1p-13);
  EXPECT_LT(largest_error_of_fractions<Float16>(), 0x1p-17);
  for (float max : {0.0f, 3.7f, -11.3f, 88.0f, -640.5f}) {
    EXPECT_LT(largest_error_after<BFloat16>(max), 0x1p-12) << max;
    EXPECT_LT(largest_error_after<Float16>(max), 0x1p-14) << max;
  }
}

TEST(AttentionWeights, OfNothingAndOfNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  RowMax<BFloat16> none;
  EXPECT_EQ(weight_of<BFloat16>(-kInf, 1, none.offset()), 0);
  EXPECT_EQ(weight_of<BFloat16>(-127, 1, none.offset()), 0);
  EXPECT_GT(weight_of<BFloat16>(-125, 1, none.offset()), 0);
  EXPECT_EQ(weight_of<BFloat16>(0, 1, none.offset()), 1);
  EXPECT_TRUE(std::isnan(weight_of<BFloat16>(std::nanf(""), 1, none.offset())));
  EXPECT_TRUE(std::isnan(weight_of<Float16>(-std::nanf(""), 1, none.offset())));
}

}  // namespace
}  // namespace banyan::cuda::cuda_attention_weights_test
