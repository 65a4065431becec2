// How many rows of prompts fit into a step of a wanted time.
#include "engine/schedule/prefill_pace.h"

#include <gtest/gtest.h>

namespace banyan::prefill_pace_test {
namespace {

// A machine whose steps take so long.
double step_s(double fixed_ms, double row_us, int64_t rows) {
  return 1e-3 * fixed_ms + 1e-6 * row_us * static_cast<double>(rows);
}

int64_t settle(PrefillPace& pace, double fixed_ms, double row_us) {
  for (int i = 0; i < 20; ++i) pace.observe(pace.rows(), step_s(fixed_ms, row_us, pace.rows()));
  return pace.rows();
}

TEST(PrefillPace, StepsComeToTheWantedTime) {
  PrefillPace pace(500, 512, 1);
  EXPECT_EQ(pace.rows(), 128) << "nothing is measured";
  EXPECT_NEAR(settle(pace, 80, 2000), (500 - 80) / 2.0, 5);
  EXPECT_NEAR(settle(pace, 80, 4000), (500 - 80) / 4.0, 3) << "it became slower";
  EXPECT_NEAR(settle(pace, 20, 1500), (500 - 20) / 1.5, 7);
}

TEST(PrefillPace, RowsStayBetweenTheirLimits) {
  PrefillPace pace(500, 512, 1);
  EXPECT_EQ(settle(pace, 5, 10), 512);
  EXPECT_EQ(settle(pace, 80, 100'000), 64);
  PrefillPace snapshots(500, 512, 48);
  EXPECT_EQ(snapshots.rows(), 96);
  EXPECT_EQ(settle(snapshots, 80, 2000), 192);
  EXPECT_EQ(settle(snapshots, 80, 100'000), 96);
  PrefillPace few(500, 16, 16);
  EXPECT_EQ(settle(few, 80, 100'000), 16);
}

TEST(PrefillPace, StepsOfFewRowsDoNotCount) {
  PrefillPace pace(500, 512, 1);
  pace.observe(31, 1);
  EXPECT_EQ(pace.rows(), 128);
  int64_t rows = settle(pace, 80, 2000);
  pace.observe(rows / 2 - 1, 1);
  EXPECT_EQ(pace.rows(), rows) << "the last of a prompt";
  pace.observe(512, step_s(80, 2000, 512));
  EXPECT_NEAR(pace.rows(), rows, rows / 10.0) << "a step with nothing but prompts";
}

TEST(PrefillPace, ZeroIsNoLimit) {
  PrefillPace pace(0, 512, 1);
  EXPECT_EQ(settle(pace, 80, 100'000), 512);
}

}  // namespace
}  // namespace banyan::prefill_pace_test
