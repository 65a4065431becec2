// The CUDA kernels, emulated, wherever they promise the bits of the portable ones.
#include <gtest/gtest.h>

#include "differential/gemm_case.h"

namespace banyan::test::cuda_test {
namespace {

TEST(Cuda, ProductsHaveThePortableBitsInEveryFormat) {
  Random random(11);
  const KernelTable& cuda = cuda::emulated::table();
  for (const WeightFormat& format : weight_formats()) {
    if (!(cuda.*format.kernel).exists()) continue;  // those of GGUF
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

}  // namespace
}  // namespace banyan::test::cuda_test
