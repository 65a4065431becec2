// Expected numbers are numpy 2.4's own.
#include "support/numpy_random.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "support/models/grown_checkpoint.h"

namespace banyan::test::numpy_random_test {
namespace {

TEST(NumpyRandom, DrawsTheWordsOfDefaultRng) {
  NumpyRandom zero(std::array{0u});
  for (uint64_t word : {0xa30febcfd9c2825fu, 0x4510bdf882d9d721u, 0xa7d3da94ecde8b8u}) {
    EXPECT_EQ(zero.next64(), word);
  }
  NumpyRandom full(std::array{1u, 2u, 3u, 4u});
  for (uint64_t word : {0x7bcebf241ec1bc7u, 0xf1dbfe8e420800f6u}) EXPECT_EQ(full.next64(), word);
  NumpyRandom halves(std::array{0u});
  for (uint32_t half : {0xd9c2825fu, 0xa30febcfu, 0x82d9d721u, 0x4510bdf8u}) {
    EXPECT_EQ(halves.next32(), half);
  }
}

TEST(NumpyRandom, DrawsUniformFloats) {
  EXPECT_EQ(crc32_of(""), 0u);
  EXPECT_EQ(crc32_of("lm_head.weight"), 0x9b4e2d52u);
  NumpyRandom random(std::array{15u, 0x9b4e2d52u});
  for (float number :
       {0x1.a3afcap-1f, 0x1.94b108p-3f, 0x1.b7c258p-3f, 0x1.569f48p-2f, 0x1.fe3cf8p-1f}) {
    EXPECT_EQ(random.uniform(), number);
  }
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    for (int digit : {byte >> 4, byte & 15}) text += "0123456789abcdef"[digit];
  }
  return text;
}

TEST(NumpyRandom, GrowsTheTensorsOfARecipe) {
  std::vector<TestTensor> tensors = grow_tensors(
      "numpy 15\n"
      "F32 2x2 1 0.51961523 a.norm.weight\n"
      "BF16 3 0 0.75 lm_head.weight\n"
      "F16 3 0 0.75 lm_head.weight\n");
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(hex(tensors[0].bytes), "dc9d2c3fdc28fe3e844f263f7be29b3f");
  EXPECT_EQ(hex(tensors[1].bytes), "f63ee8bedbbe");
  EXPECT_EQ(hex(tensors[2].bytes), "ac3742b7d9b6");
}

}  // namespace
}  // namespace banyan::test::numpy_random_test
