#include "base/os/processor_use.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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

// What others do here is not ours to say.
TEST(ProcessorUse, WhatIsFreeIsPartOfAll) {
  OtherPrograms others;
  double all = others.free_processors();
  EXPECT_GE(all, 1) << "at first";
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    double free = others.free_processors();
    EXPECT_GE(free, 0);
    EXPECT_LE(free, all);
  }
}

}  // namespace
}  // namespace banyan::processor_use_test
