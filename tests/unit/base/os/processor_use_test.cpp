#include "base/os/processor_use.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

namespace banyan::processor_use_test {
namespace {

TEST(ProcessorUse, CountsTicksThatAreNotIdle) {
  std::string stat =
      "cpu  30 0 6 400 10 1 2 3 0 0\n"
      "cpu0 10 1 2 300 9 1 2 3 5 0\n"
      "cpu1 20 0 4 100 1 0 0 0 0 0\n"
      "cpu12 7\n"
      "intr 123 4 5\n";
  EXPECT_EQ(busy_ticks(stat, [](int) { return true; }), 10 + 1 + 2 + 1 + 2 + 3 + 20 + 4 + 7);
  EXPECT_EQ(busy_ticks(stat, [](int processor) { return processor == 1; }), 24);
  EXPECT_EQ(busy_ticks("", [](int) { return true; }), 0);
  EXPECT_EQ(busy_ticks("cpuX 1 2 3\n", [](int) { return true; }), 0);
}

// What others do here is not ours to say; our own time is not theirs.
TEST(ProcessorUse, OurOwnTimeIsNotOfOthers) {
  OtherPrograms others;
  double all = others.free_processors(), most = 0;
  EXPECT_GE(all, 1) << "at first";
  for (int i = 0; i < 10 && most < all - 0.5; ++i) {
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (std::chrono::steady_clock::now() < end) {
    }
    most = std::max(most, others.free_processors());
    EXPECT_LE(most, all);
  }
  EXPECT_GT(most, 0.4) << "the one that we used, and what others left";
}

}  // namespace
}  // namespace banyan::processor_use_test
