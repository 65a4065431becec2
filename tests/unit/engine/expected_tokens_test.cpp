// The expected tokens of a step with drafts.
#include "engine/drafters/expected_tokens.h"

#include <gtest/gtest.h>

namespace banyan::expected_tokens_test {
namespace {

TEST(ExpectedTokens, AreTheSumOfTheChances) {
  EXPECT_DOUBLE_EQ(expected_tokens(0.9, 1), 1.9);
  EXPECT_DOUBLE_EQ(expected_tokens(0.5, 3), 1 + 0.5 + 0.25 + 0.125);
  EXPECT_DOUBLE_EQ(expected_tokens(0.9, 0), 1);
  EXPECT_DOUBLE_EQ(expected_tokens(0, 4), 1);
  EXPECT_DOUBLE_EQ(expected_tokens(1, 4), 5);
  // Near 1, where the formula divides by almost nothing.
  EXPECT_NEAR(expected_tokens(1 - 1e-9, 4), 5, 1e-5);
}

// A mean number of draft tokens lies between its neighbours.
TEST(ExpectedTokens, TakeAMean) {
  EXPECT_GT(expected_tokens(0.8, 1.5), expected_tokens(0.8, 1));
  EXPECT_LT(expected_tokens(0.8, 1.5), expected_tokens(0.8, 2));
}

}  // namespace
}  // namespace banyan::expected_tokens_test
