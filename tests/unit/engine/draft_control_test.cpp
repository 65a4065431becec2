// The choice of draft lengths, in simulated steps with known times and acceptance.
#include "engine/drafters/draft_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"
#include "engine/drafters/acceptance.h"

namespace banyan {
namespace {

constexpr double kMs = 1e-3;
constexpr int64_t kOffered = 8;

struct Machine {
  const char* name;
  std::function<double(double rows)> step_s;
};

const std::vector<Machine>& machines() {
  static const std::vector<Machine> kMachines = {
      {"flat", [](double rows) { return kMs * (20 + 0.2 * rows); }},
      {"steep", [](double rows) { return kMs * (12 + 7 * rows); }},
      {"dearer than it is worth", [](double rows) { return kMs * (0.5 + 5 * rows); }},
      {"stairs", [](double rows) { return kMs * (5 + 8 * std::ceil(rows / 4)); }},
      {"a late stair", [](double rows) { return kMs * (10 + (rows > 6 ? 30 : 0) + 0.3 * rows); }},
  };
  return kMachines;
}

// Tokens per second of `steps` steps of `sequences` sequences whose draft tokens are accepted with
// probability `acceptance`.
double simulate(const Machine& machine, int64_t sequences, double acceptance, uint64_t seed,
                int steps) {
  DraftControl control(default_step_estimate(), true);
  Acceptance learned;
  std::vector<OwnAcceptance> own(static_cast<size_t>(sequences));
  std::vector<std::vector<double>> chances(static_cast<size_t>(sequences));
  std::vector<DraftLine> lines(static_cast<size_t>(sequences));
  double all_s = 0;
  int64_t all_tokens = 0;
  uint64_t draws = 0;
  MeasuredStep measured;
  for (int step = 0; step < steps; ++step) {
    for (size_t i = 0; i < lines.size(); ++i) {
      chances[i].clear();
      double chance = 1;
      for (int64_t j = 0; j < kOffered && control.allows(); ++j) {
        chances[i].push_back(chance *= learned.chance(1, j, 0.9f, own[i]));
      }
      lines[i] = {.chances = chances[i]};
    }
    control.choose(sequences, lines);
    if (step > 0) control.observe(measured);  // as in the engine: the next step is chosen by then
    measured = {.sequences = sequences, .rows = sequences};
    for (size_t i = 0; i < lines.size(); ++i) {
      int64_t kept = 0;
      for (bool accepted = true; accepted && kept < lines[i].taken;) {
        accepted = uniform(seed, draws++, 0) < acceptance;
        learned.observe(1, kept, 0.9f, accepted, own[i]);
        kept += accepted ? 1 : 0;
      }
      if (lines[i].taken == 0) own[i].fade();
      measured.drafts += lines[i].taken;
      measured.tokens += 1 + kept;
    }
    measured.rows += measured.drafts;
    double time_s = machine.step_s(static_cast<double>(measured.rows));
    measured.time_s = time_s * (1 + 0.1 * (uniform(seed, draws++, 0) - 0.5));
    all_s += time_s;
    all_tokens += measured.tokens;
  }
  return static_cast<double>(all_tokens) / all_s;
}

// The same with drafts of `length` tokens in each step.
double fixed_rate(const Machine& machine, int64_t sequences, double acceptance, int length) {
  double tokens = 0;
  for (int j = 0; j <= length; ++j) tokens += std::pow(acceptance, j);
  auto n = static_cast<double>(sequences);
  return n * tokens / machine.step_s(n * (1 + length));
}

// Including what it takes to find out: trials, and windows without drafts where little is gained.
TEST(DraftControl, IsNearlyAsFastAsTheBestLengthAndNeverSlowerThanNone) {
  for (const Machine& machine : machines()) {
    for (int64_t sequences : {1, 4, 12, 24}) {
      for (double acceptance : {0.1, 0.4, 0.8, 0.95}) {
        double none = fixed_rate(machine, sequences, acceptance, 0), best = none;
        for (int length = 1; length <= kOffered; ++length) {
          best = std::max(best, fixed_rate(machine, sequences, acceptance, length));
        }
        double controlled = simulate(machine, sequences, acceptance, 7, 6000);
        auto where = [&] {
          return std::string(machine.name) + ", " + std::to_string(sequences) +
                 " sequences, acceptance " + std::to_string(acceptance) + ": " +
                 std::to_string(controlled / best) + " of the best, " +
                 std::to_string(controlled / none) + " of none";
        };
        EXPECT_GE(controlled, 0.97 * best) << where();
        EXPECT_GE(controlled, 0.99 * none) << where();
      }
    }
  }
}

std::vector<int64_t> chosen(DraftControl& control, int64_t sequences,
                            const std::vector<std::vector<double>>& chances) {
  std::vector<DraftLine> lines;
  for (const std::vector<double>& line : chances) lines.push_back({.chances = line});
  control.choose(sequences, lines);
  std::vector<int64_t> taken;
  for (const DraftLine& line : lines) taken.push_back(line.taken);
  return taken;
}

using Lengths = std::vector<int64_t>;

TEST(DraftControl, TakesTheLikeliestTokensOfAllSequences) {
  DraftControl control(default_step_estimate(), false);  // 8 + rows
  EXPECT_EQ(chosen(control, 1, {{0.9, 0.8, 0.7, 0.1}}), (Lengths{3}));
  EXPECT_EQ(chosen(control, 1, {{0.05}}), (Lengths{0}));
  // Two sequences: rate(0) is 0.2, so only what is likelier than that pays.
  EXPECT_EQ(chosen(control, 2, {{0.9, 0.85, 0.8}, {0.1}}), (Lengths{3, 0}));
  // Among 64, a row costs nearly what it may gain.
  EXPECT_EQ(chosen(control, 64, {{0.85, 0.8}, {0.99, 0.98}}), (Lengths{0, 0}))
      << "under 1.5% of gain";
  std::vector<std::vector<double>> sure(64, {0.99, 0.3});
  EXPECT_EQ(chosen(control, 64, sure), Lengths(64, 1));
  EXPECT_EQ(chosen(control, 3, {{}, {}, {}}), (Lengths{0, 0, 0}));
}

TEST(DraftControl, AsksADrafterForWhatPaysForItsPasses) {
  DraftControl control(
      [] {
        RowCurve flat;
        flat.fill(1);
        return flat;
      }(),
      true);
  for (int i = 0; i < 2; ++i) {
    control.observe({.sequences = 1, .rows = 1, .tokens = 1, .time_s = 10 * kMs});
  }
  const double rates[] = {0.8};
  EXPECT_EQ(control.passes(1, rates, 16, 0, 0), 16) << "rows are free here";
  EXPECT_EQ(control.passes(1, rates, 16, 0, kMs), 6);
  EXPECT_EQ(control.passes(1, rates, 16, 0, 9 * kMs), 0);
  EXPECT_EQ(control.passes(1, rates, 16, 40 * kMs, 0), 0);
}

// Steps of one sequence; returns how many of them may have drafts.
int feed(DraftControl& control, int steps, int64_t drafts, int64_t tokens, double time_s) {
  int allowed = 0;
  const std::vector<double> likely(8, 0.9);
  for (int i = 0; i < steps; ++i) {
    bool allows = control.allows();
    allowed += allows ? 1 : 0;
    chosen(control, 1, {likely});
    MeasuredStep step{.sequences = 1, .rows = 1, .tokens = 1, .time_s = kMs};
    if (allows) step = {1, 1 + drafts, drafts, tokens, time_s, 0};
    control.observe(step);
  }
  return allowed;
}

// Chances that are wrong: 0.9 was claimed, nothing is accepted.
TEST(DraftControl, PausesWhereDraftsAreMeasuredToLose) {
  DraftControl control(default_step_estimate(), true);
  int allowed = feed(control, 5000, 4, 1, 1.2 * kMs);
  EXPECT_LT(allowed, 600);
  SpeculationStats stats;
  control.report(stats);
  EXPECT_LT(stats.measured_gain, 1);
  EXPECT_GT(stats.paused_steps, 4000);
  EXPECT_NEAR(stats.plain_s[0], kMs, 0.01 * kMs);
}

TEST(DraftControl, GoesOnWhereDraftsSaveTime) {
  DraftControl control(default_step_estimate(), true);
  EXPECT_GT(feed(control, 2000, 4, 3, 1.2 * kMs), 1900);
}

TEST(DraftControl, StepsThatTellNothingChangeNothing) {
  DraftControl control(default_step_estimate(), true);
  for (int i = 0; i < 100; ++i) control.observe({.rows = 9, .tokens = 1, .time_s = 5 * kMs});
  SpeculationStats stats;
  control.report(stats);
  EXPECT_EQ(stats.plain_s[0], 0);
}

TEST(StepCost, FollowsWhatIsMeasuredAndTheEstimateElsewhere) {
  StepCost cost;  // 8 + rows
  cost.observe(1, 1, 18 * kMs);
  EXPECT_NEAR(cost.plain_s(1), 18 * kMs, 1e-9);
  EXPECT_NEAR(cost.plain_s(4), 24 * kMs, 1e-9) << "twice the estimate, as measured for one";
  EXPECT_NEAR(at_rows(cost.drafted_s(1), 5), 26 * kMs, 1e-9);
  cost.observe(1, 9, 17 * kMs);
  EXPECT_GE(at_rows(cost.drafted_s(1), 9), 18 * kMs) << "never less than without drafts";
  EXPECT_GT(at_rows(cost.drafted_s(1), 64), 60 * kMs);
  for (int i = 0; i < 200; ++i) cost.observe(1, 1, 9 * kMs);
  cost.observe(1, 1, 1000 * kMs);
  EXPECT_LT(cost.plain_s(1), 10.5 * kMs) << "an interrupted step";
}

TEST(StepCost, BucketsCoverAllRows) {
  for (int64_t rows = 1; rows < 5000; ++rows) {
    int bucket = row_bucket(rows);
    EXPECT_LE(bucket, row_bucket(rows + 1));
    EXPECT_TRUE(rows > 128 || rows_of_bucket(bucket) == rows);
    EXPECT_TRUE(bucket + 1 == kRowBuckets || rows_of_bucket(bucket) * 1.0001 >= rows);
  }
}

TEST(Acceptance, IsLearnedByPositionAndConfidence) {
  Acceptance acceptance;
  OwnAcceptance own;
  for (int i = 0; i < 400; ++i) {
    acceptance.observe(1, 0, 0.95f, true, own);
    acceptance.observe(1, 1, 0.2f, i % 4 == 0, own);
  }
  OwnAcceptance fresh;
  EXPECT_GT(acceptance.chance(1, 0, 0.95f, fresh), 0.95);
  EXPECT_NEAR(acceptance.chance(1, 1, 0.2f, fresh), 0.25, 0.1);
  EXPECT_NEAR(acceptance.chance(2, 0, 0.5f, fresh), 0.8, 1e-9) << "nothing is known of others";
}

TEST(Acceptance, KnowsThatOneSequenceIsHarderThanTheOthers) {
  Acceptance acceptance;
  OwnAcceptance easy, hard;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 4; ++j) acceptance.observe(1, 0, 0.9f, true, easy);
    acceptance.observe(1, 0, 0.9f, i % 2 == 0, hard);
  }
  EXPECT_GT(acceptance.chance(1, 0, 0.9f, easy), 0.95);
  EXPECT_NEAR(acceptance.chance(1, 0, 0.9f, hard), 0.5, 0.15);
  for (int i = 0; i < 300; ++i) hard.fade();
  EXPECT_NEAR(acceptance.chance(1, 0, 0.9f, hard), 0.9, 0.05);
}

}  // namespace
}  // namespace banyan
