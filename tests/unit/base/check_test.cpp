// CHECK: the message of a failure, and no side effects otherwise.
#include "base/check.h"

#include <gtest/gtest.h>

namespace banyan::check_test {
namespace {

TEST(CheckDeathTest, SaysWhatFailedAndTheValues) {
  int pages = 3;
  EXPECT_DEATH(CHECK(pages == 4, "{} of {} pages", pages, 4),
               "check_test.cpp:[0-9]+: CHECK failed: pages == 4: 3 of 4 pages");
  EXPECT_DEATH(CHECK(pages == 4), "CHECK failed: pages == 4\n");
}

TEST(Check, EvaluatesNothingElseWhenItHolds) {
  int evaluated = 0;
  auto count = [&] { return ++evaluated; };
  CHECK(count() == 1, "{}", count());
  EXPECT_EQ(evaluated, 1);
}

}  // namespace
}  // namespace banyan::check_test
