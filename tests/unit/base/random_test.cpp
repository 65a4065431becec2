// Philox against its published test vectors.
#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace banyan::random_test {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that the authors of Philox publish with their Random123 library.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, StaysBelowOneAndFillsTheInterval) {
  constexpr int kDraws = 100000, kBuckets = 100;
  std::array<int, kBuckets> counts = {};
  for (int i = 0; i < kDraws; ++i) {
    double u = uniform(42, static_cast<uint64_t>(i), 7);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++counts[static_cast<size_t>(u * kBuckets)];
  }
  double chi_square = 0, expected = 1.0 * kDraws / kBuckets;
  for (int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 170);  // 99 degrees of freedom: passed by chance with p = 1e-5
}

TEST(Uniform, DependsOnEveryBitOfKeyAndCounter) {
  std::set<double> values = {uniform(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    values.insert(uniform(1ull << bit, 0, 0));
    values.insert(uniform(0, 1ull << bit, 0));
    values.insert(uniform(0, 0, 1ull << bit));
  }
  EXPECT_EQ(values.size(), 1u + 3 * 64);
}

}  // namespace
}  // namespace banyan::random_test
