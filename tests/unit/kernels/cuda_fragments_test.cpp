// Weights of integers in the order that tensor cores take them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernels/cuda/fragment_gemm.h"
#include "kernels/cuda/fragments.h"

namespace banyan::cuda::cuda_fragments_test {
namespace {

constexpr Format kFormats[] = {Format::kInt8, Format::kInt4, Format::kUint4, Format::kMxfp4,
                               Format::kFp8};

TEST(Fragments, FitGroupsThatDivideAChunkOrAreWholeOnes) {
  for (int64_t group : {32, 64, 128, 256, 384, 3840}) {
    EXPECT_TRUE(in_fragments(Format::kInt4, 960 * 4, group)) << group;
  }
  EXPECT_FALSE(in_fragments(Format::kInt8, 480, 96));
  EXPECT_FALSE(in_fragments(Format::kInt8, 480, 160));
  EXPECT_TRUE(in_fragments(Format::kInt8, 77, 77));
  EXPECT_TRUE(in_fragments(Format::kFp8, 256, 128));
  EXPECT_FALSE(in_fragments(Format::kBF16, 256, 256));
}

TEST(Fragments, EveryCodeScaleAndZeroHasAPlaceOfItsOwn) {
  constexpr int64_t kN = 70, kK = 384;
  for (Format format : kFormats) {
    for (int64_t group : {32, 64, 128, 384}) {
      Fragments fragments(format, kK, group);
      std::set<std::pair<int64_t, int>> codes;
      std::map<int64_t, int64_t> row_of_byte;
      std::set<int64_t> others;
      for (int64_t j = 0; j < kN; ++j) {
        for (int64_t c = 0; c < kK; ++c) {
          Fragments::Place place = fragments.code(j, c);
          EXPECT_TRUE(codes.insert({place.byte, place.nibble}).second);
          // Rows are packed at the same time.
          EXPECT_EQ(row_of_byte.emplace(place.byte, j).first->second, j);
        }
        for (int64_t g = 0; g < kK / group; ++g) {
          for (int64_t byte = 0; byte < 4; ++byte) {
            EXPECT_TRUE(others.insert(fragments.scale(j, g) + byte).second);
          }
          if (format == Format::kUint4) {
            EXPECT_TRUE(others.insert(fragments.zero(j, g * group)).second);
          }
        }
      }
      for (int64_t at : others) {
        EXPECT_FALSE(row_of_byte.contains(at));
        EXPECT_LT(at, fragments.bytes(kN));
      }
      EXPECT_LT(row_of_byte.rbegin()->first, fragments.bytes(kN));
      EXPECT_EQ(fragments.chunk_bytes() % 16, 0);  // a bulk copy
    }
  }
}

TEST(Fragments, NibblesBecomeSignedBytes) {
  uint32_t a[4];
  unpack_nibbles(0xf0872143u, 0x0fedcba9u, {0x08080808u, 0x03030303u}, a);
  EXPECT_EQ(a[0], 0xf8fff9fbu);  // 3, 1, 7, 0 less 8
  EXPECT_EQ(a[2], 0x0700fafcu);  // 4, 2, 8, 15 less 8
  EXPECT_EQ(a[1], 0x0c0a0806u);  // 9, 11, 13, 15 less 3
  EXPECT_EQ(a[3], 0xfd0b0907u);  // 10, 12, 14, 0 less 3
}

TEST(Fragments, CodesOfFp8AreBf16TimesAPowerOfTwo) {
  for (uint32_t code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    uint32_t both = shifted_fp8(code | (255 - code) << 8);
    float value = to_float(BFloat16{static_cast<uint16_t>(both)}) * 0x1p120f;
    EXPECT_EQ(value, to_float(Float8E4M3{static_cast<uint8_t>(code)})) << code;
    EXPECT_EQ(both >> 16, shifted_fp8(255 - code)) << code;
    EXPECT_EQ(shifted_fp8<2>(code << 16 | (255 - code) << 24), both) << code;
  }
}

}  // namespace
}  // namespace banyan::cuda::cuda_fragments_test
