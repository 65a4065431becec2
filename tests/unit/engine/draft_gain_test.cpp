#include "engine/drafters/draft_gain.h"

#include <gtest/gtest.h>

namespace banyan {
namespace {

constexpr double kMs = 1e-3;

// Steps of one sequence: with `rows` rows a step takes `time_s` and draws `tokens` tokens.
void feed(DraftGain& gain, int steps, int64_t rows, int64_t tokens, double time_s) {
  for (int i = 0; i < steps; ++i) {
    gain.observe({.sequences = 1, .rows = rows, .tokens = tokens, .time_s = time_s});
  }
}

// Steps without drafts until some are allowed again.
int pause(DraftGain& gain) {
  int steps = 0;
  for (; !gain.allows(); ++steps) feed(gain, 1, 1, 1, kMs);
  return steps;
}

TEST(DraftGain, DraftsAreLeftWhereTheirRowsCostWhatTheySave) {
  DraftGain gain;
  feed(gain, 10, 1, 1, kMs);
  EXPECT_TRUE(gain.allows());
  feed(gain, 15, 4, 2, 2 * kMs);
  EXPECT_TRUE(gain.allows()) << "too early to tell";
  feed(gain, 1, 4, 2, 2 * kMs);
  EXPECT_FALSE(gain.allows()) << "two tokens in the time of two";
  EXPECT_EQ(pause(gain), 64);
  feed(gain, 16, 4, 2, 2.2 * kMs);
  EXPECT_EQ(pause(gain), 128) << "each loss in a row doubles the pause";
  feed(gain, 40, 4, 3, 2 * kMs);
  EXPECT_TRUE(gain.allows());
  for (int i = 0; i < 200 && gain.allows(); ++i) feed(gain, 1, 4, 1, 2 * kMs);
  EXPECT_EQ(pause(gain), 64) << "a gain in between starts over";
}

TEST(DraftGain, DraftsGoOnWhereTheySaveTime) {
  DraftGain gain;
  feed(gain, 10, 1, 1, kMs);
  feed(gain, 1000, 4, 2, 1.5 * kMs);
  EXPECT_TRUE(gain.allows());
}

TEST(DraftGain, AnInterruptedStepDecidesNothing) {
  DraftGain gain;
  feed(gain, 10, 1, 1, kMs);
  feed(gain, 1, 1, 1, 1000 * kMs);
  feed(gain, 10, 1, 1, kMs);
  feed(gain, 30, 4, 2, 1.5 * kMs);
  feed(gain, 1, 2, 2, 1000 * kMs);
  EXPECT_TRUE(gain.allows());
}

TEST(DraftGain, WithoutAYardstickOneIsMade) {
  DraftGain gain;
  feed(gain, 16, 4, 2, 2 * kMs);
  EXPECT_FALSE(gain.allows());
  EXPECT_EQ(pause(gain), 8);
  // Of as many sequences: those of others say nothing.
  gain.observe({.sequences = 2, .rows = 8, .tokens = 2, .time_s = 9 * kMs});
  EXPECT_TRUE(gain.allows());
}

TEST(DraftGain, RowsCostWhatStepsWithMoreOfThemTakeLonger) {
  DraftGain gain;
  double before = gain.step_rows(1);
  feed(gain, 20, 1, 1, kMs);
  EXPECT_EQ(gain.step_rows(1), before);
  feed(gain, 100, 5, 5, 1.4 * kMs);  // 0.1 ms a row: 0.9 ms are the step's own
  EXPECT_NEAR(gain.step_rows(1), 9, 0.5);
  feed(gain, 300, 5, 5, 4.2 * kMs);  // 0.8 ms a row
  EXPECT_NEAR(gain.step_rows(1), 0.25, 0.05);
}

TEST(DraftGain, StepsThatSayNothingChangeNothing) {
  DraftGain gain;
  feed(gain, 100, 4, 1, 0);
  for (int i = 0; i < 100; ++i) gain.observe({.rows = 9, .tokens = 1, .time_s = 5 * kMs});
  EXPECT_TRUE(gain.allows());
}

}  // namespace
}  // namespace banyan
