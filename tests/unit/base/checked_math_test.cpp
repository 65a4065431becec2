// Arithmetic that reports overflow, up to the limits of the types.
#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace banyan::checked_math_test {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, OverflowIsNoValue) {
  EXPECT_EQ(checked_add<int64_t>(kMax, 0), kMax);
  EXPECT_EQ(checked_add<int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_multiply<int64_t>(kMax / 2, 2), kMax - 1);
  EXPECT_EQ(checked_multiply<int64_t>(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_multiply<size_t>(size_t{1} << 32, size_t{1} << 32), std::nullopt);
}

TEST(CheckedMath, ElementsOfAShape) {
  auto elements = [](std::vector<int64_t> shape) { return checked_elements(shape); };
  EXPECT_EQ(elements({}), 1);
  EXPECT_EQ(elements({2, 3, 4}), 24);
  EXPECT_EQ(elements({0, kMax}), 0);
  EXPECT_EQ(elements({2, -1}), std::nullopt);
  EXPECT_EQ(elements({4194305, 4194305, 211106198978564}), std::nullopt);
}

}  // namespace
}  // namespace banyan::checked_math_test
