// The CUDA kernels, emulated: the portable bits wherever they promise them, and those of tensor
// cores in bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "differential/gemm_case.h"
#include "kernels/cuda/wgmma_arithmetic.h"

namespace banyan::test::cuda_test {
namespace {

TEST(Cuda, ProductsHaveThePortableBitsInEveryFormat) {
  Random random(11);
  const KernelTable& cuda = cuda_table();
  for (const WeightFormat& format : weight_formats()) {
    if (!(cuda.*format.kernel).exists()) continue;  // those of GGUF
    if (rounds_x(cuda, format)) continue;           // the next test
    for (int64_t n : {1, 63, 130}) {
      int64_t k = format.quantised ? 160 : 77, group = format.quantised ? 32 : k;
      Weights weights(format, n, k, group, random);
      std::vector<float> x = random.normals(37 * k), bias = random.normals(n);
      for (int64_t rows : {1, 17, 37}) {
        std::vector<float> expected =
            multiply(PackedWeights(*tables().front(), weights), x.data(), k, rows, bias.data());
        EXPECT_TRUE(same_bits(
            multiply(PackedWeights(cuda, weights), x.data(), k, rows, bias.data()), expected))
            << format.name << ", " << n << " features, " << rows << " rows";
      }
    }
  }
}

// Column by column from the definition: rounded, in segments, sixteen at a time.
float bf16_product(const float* x, const float* w, int64_t k, int segments) {
  auto bits = [](float value) { return from_float<BFloat16>(value).bits; };
  int64_t columns = (k + 63) / 64 * 64 / segments;
  float total = 0;
  for (int s = 0; s < segments; ++s) {
    float sum = 0;
    for (int64_t c = s * columns; c < (s + 1) * columns; c += 16) {
      uint16_t a[16] = {}, b[16] = {};
      for (int64_t i = 0; i < 16 && c + i < k; ++i) a[i] = bits(x[c + i]), b[i] = bits(w[c + i]);
      sum = cuda::wgmma_step(sum, a, b);
    }
    total = segments == 1 ? sum : total + sum;
  }
  return total;
}

TEST(Cuda, ProductsOfBf16HaveTheBitsOfTensorCores) {
  Random random(12);
  const WeightFormat& bf16 = weight_formats()[1];
  ASSERT_EQ(bf16.name, "bf16");
  for (auto [n, k, segments] : {std::tuple{70, 77, 1}, {3, 64, 1}, {100, 512, 2}, {65, 2048, 8}}) {
    Weights weights(bf16, n, k, k, random);
    std::vector<float> x = random.normals(5 * k), bias = random.normals(n);
    auto y = multiply(PackedWeights(cuda_table(), weights), x.data(), k, 5, bias.data());
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(y[r * n + j],
                  bf16_product(&x[r * k], &weights.values[j * k], k, segments) + bias[j])
            << n << " features, " << k << " columns, row " << r << ", " << j;
      }
    }
  }
}

TEST(Cuda, ProductsOfFp8HaveTheBitsOfTensorCores) {
  Random random(13);
  const WeightFormat& fp8 = *std::ranges::find(weight_formats(), "fp8", &WeightFormat::name);
  for (auto [n, k, group] :
       {std::tuple{70, 77, 77}, {3, 64, 32}, {100, 512, 128}, {65, 384, 384}}) {
    Weights weights(fp8, n, k, group, random);
    std::vector<float> x = random.normals(5 * k), bias = random.normals(n);
    auto y = multiply(PackedWeights(cuda_table(), weights), x.data(), k, 5, bias.data());
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (int64_t g = 0; g < k / group; ++g) {
          float scale = weights.scales[j * (k / group) + g];
          std::vector<float> codes(group);
          for (int64_t c = 0; c < group; ++c) {
            codes[c] =
                weights.decoded(static_cast<uint8_t>(weights.source[j * k + g * group + c]), 0);
          }
          float sum = bf16_product(&x[r * k + g * group], codes.data(), group, 1);
          expected = std::fma(sum, scale, expected);
        }
        ASSERT_EQ(y[r * n + j], expected + bias[j]) << n << " features, row " << r << ", " << j;
      }
    }
  }
}

}  // namespace
}  // namespace banyan::test::cuda_test
