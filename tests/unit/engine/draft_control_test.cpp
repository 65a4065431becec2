// The choice of draft lengths, in simulated steps with known times and acceptance.
#include "engine/drafters/draft_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/signed.h"
#include "engine/drafters/acceptance.h"
#include "support/sanitized.h"

namespace banyan::draft_control_test {
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

// Steps of sequences whose draft tokens are accepted with a given probability.
class Simulation {
 public:
  // Proposing takes `drafting_s` of each step that may have drafts.
  Simulation(const Machine& machine, int64_t sequences, float confidence = 0.9f,
             double drafting_s = 0)
      : machine_(machine), confidence_(confidence), drafting_s_(drafting_s), own_(sequences) {}

  // Tokens per second.
  double run(double acceptance, int steps) {
    double all_s = 0;
    int64_t all_tokens = 0;
    for (int step = 0; step < steps; ++step) {
      all_tokens += this->step(acceptance);
      all_s += last_s_;
    }
    tokens_ += static_cast<double>(all_tokens);
    return static_cast<double>(all_tokens) / all_s;
  }

  // Times that vary by so much from step to step, around a level that wanders.
  void disturb(uint64_t seed, double noise, double wander) {
    seed_ = seed;
    noise_ = noise;
    wander_ = wander;
  }
  // How long steps without drafts would have taken for the same tokens.
  double plain_s() const { return plain_s_; }
  double tokens() const { return tokens_; }

  // All sequences end, and others take their places.
  void replace_sequences() {
    for (const One& one : own_) control_.add_credit(one.saved_s);
    own_.assign(own_.size(), {});
  }

 private:
  struct One {
    OwnAcceptance acceptance;
    double saved_s = 0;
    std::vector<double> chances;
  };

  int64_t step(double acceptance) {
    auto sequences = std::ssize(own_);
    lines_.clear();
    for (One& one : own_) {
      one.chances.clear();
      double chance = 1;
      for (int64_t j = 0; j < kOffered && control_.allows(one.saved_s); ++j) {
        one.chances.push_back(chance *= learned_.chance(1, {j, confidence_}, one.acceptance));
      }
      lines_.push_back({.chances = one.chances, .saved_s = one.saved_s});
    }
    control_.choose(sequences, lines_);
    control_.observe(measured_);  // as in the engine: the next step is chosen by then
    outcomes_.clear();
    measured_ = {.sequences = sequences, .rows = sequences};
    for (size_t i = 0; i < own_.size(); ++i) verify(own_[i], lines_[i].taken, acceptance);
    control_.settle(sequences, outcomes_);
    measured_.rows += measured_.drafts;
    level_ = 0.9 * level_ + wander_ * (uniform(seed_, draws_++, 0) - 0.5);
    last_s_ = machine_.step_s(static_cast<double>(measured_.rows)) * (1 + level_);
    double share = static_cast<double>(measured_.tokens) / static_cast<double>(sequences);
    plain_s_ += machine_.step_s(static_cast<double>(sequences)) * (1 + level_) * share;
    measured_.time_s = last_s_ * (1 + noise_ * (uniform(seed_, draws_++, 0) - 0.5));
    bool proposed =
        std::ranges::any_of(own_, [this](const One& one) { return control_.allows(one.saved_s); });
    measured_.drafting_s = proposed ? drafting_s_ : 0;
    last_s_ += measured_.drafting_s;
    return measured_.tokens;
  }

  void verify(One& one, int64_t drafts, double acceptance) {
    int64_t kept = 0;
    for (bool accepted = true; accepted && kept < drafts;) {
      accepted = uniform(seed_, draws_++, 0) < acceptance;
      learned_.observe(1, {kept, confidence_}, accepted, one.acceptance);
      kept += accepted ? 1 : 0;
    }
    if (drafts == 0) one.acceptance.fade();
    outcomes_.push_back({&one.saved_s, drafts, kept});
    measured_.drafts += drafts;
    measured_.tokens += 1 + kept;
  }

  const Machine& machine_;
  const float confidence_;
  const double drafting_s_;
  DraftControl control_{default_step_estimate(), true};
  Acceptance learned_;
  std::vector<One> own_;
  std::vector<DraftLine> lines_;
  std::vector<DraftOutcome> outcomes_;
  MeasuredStep measured_;
  double last_s_ = 0, plain_s_ = 0, tokens_ = 0;
  double noise_ = 0.06, wander_ = 0, level_ = 0;
  uint64_t seed_ = 7, draws_ = 0;
};

// The same with drafts of `length` tokens in each step.
double fixed_rate(const Machine& machine, int64_t sequences, double acceptance, int length) {
  double tokens = 0;
  for (int j = 0; j <= length; ++j) tokens += std::pow(acceptance, j);
  auto n = static_cast<double>(sequences);
  return n * tokens / machine.step_s(n * (1 + length));
}

// Including what it takes to find out.
TEST(DraftControl, IsNearlyAsFastAsTheBestLengthAndNeverSlowerThanNone) {
  std::vector<int64_t> counts = {4};
  if (!test::kSanitized) counts = {1, 4, 12, 24};
  for (const Machine& machine : machines()) {
    for (int64_t sequences : counts) {
      for (double acceptance : {0.0, 0.1, 0.4, 0.8, 0.95}) {
        double none = fixed_rate(machine, sequences, acceptance, 0), best = none;
        for (int length = 1; length <= kOffered; ++length) {
          best = std::max(best, fixed_rate(machine, sequences, acceptance, length));
        }
        double controlled = Simulation(machine, sequences).run(acceptance, 6000);
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

// A conversation that repeats nothing, after others whose drafts paid.
TEST(DraftControl, LosesAtMostOnePercentOfAShortConversationAfterGoodOnes) {
  for (const Machine& machine : machines()) {
    for (int64_t sequences : {1, 4, 32}) {
      Simulation simulation(machine, sequences);
      for (int i = 0; i < 4; ++i) {
        simulation.run(0.95, 100);
        simulation.replace_sequences();
      }
      for (int i = 0; i < 3; ++i) {
        double none = fixed_rate(machine, sequences, 0, 0), speed = simulation.run(0, 320);
        EXPECT_GE(speed, 0.99 * none)
            << machine.name << ", " << sequences << " sequences: " << speed / none;
        simulation.replace_sequences();
      }
    }
  }
}

// Where drafts gain nothing, the length whose time looks shortest by chance must not be taken for
// a gain.
TEST(DraftControl, LosesLittleWhereStepTimesWander) {
  constexpr int kRuns = 12, kSteps = 300;
  for (const Machine& machine : machines()) {
    for (int64_t sequences : {8, 32}) {
      double ratios = 0;
      for (int run = 0; run < kRuns; ++run) {
        Simulation simulation(machine, sequences);
        simulation.disturb(static_cast<uint64_t>(run), 0.1, 0.1);
        double speed = simulation.run(0.6, kSteps);
        ratios += simulation.plain_s() * speed / simulation.tokens();
      }
      EXPECT_GE(ratios / kRuns, 0.985) << machine.name << ", " << sequences << " sequences";
    }
  }
}

// One that runs a model, and is right more often than it thinks.
TEST(DraftControl, TriesADrafterWhoseProposalsTakeTime) {
  const Machine machine = {"sparse", [](double rows) { return kMs * (20 + 14 * rows); }};
  double none = fixed_rate(machine, 1, 0, 0);
  double speed = Simulation(machine, 1, 0.02f, 4 * kMs).run(0.95, 600);
  EXPECT_GE(speed, 1.1 * none) << speed / none;
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
  for (int64_t drafts = 1; drafts <= 16; ++drafts) {
    EXPECT_EQ(control.passes(1, rates, 16, 0, 0), drafts) << "one more than was measured";
    control.observe(
        {.sequences = 1, .rows = 1 + drafts, .drafts = drafts, .tokens = 1, .time_s = 10 * kMs});
  }
  EXPECT_EQ(control.passes(1, rates, 16, 0, 0), 16) << "rows are free here";
  EXPECT_EQ(control.passes(1, rates, 16, 0, kMs), 6);
  EXPECT_EQ(control.passes(1, rates, 16, 0, 9 * kMs), 0);
  EXPECT_EQ(control.passes(1, rates, 16, 40 * kMs, 0), 0);
}

// Steps of one sequence that take 1 ms without drafts; returns how many of them had drafts.
int feed(DraftControl& control, int steps, int64_t drafts, int64_t accepted, double time_s) {
  int drafted = 0;
  double saved_s = 0;
  const std::vector<double> likely(as_size(drafts), 0.9);
  bool has_drafts = false;
  for (int i = 0; i < steps; ++i) {
    MeasuredStep step{.sequences = 1, .rows = 1, .tokens = 1, .time_s = kMs};
    if (has_drafts) step = {1, 1 + drafts, drafts, 1 + accepted, time_s, 0};
    DraftOutcome outcome{&saved_s, step.drafts, step.tokens - 1};
    control.settle(1, std::span(&outcome, 1));
    DraftLine line{.chances = likely, .saved_s = saved_s};
    bool chooses = control.choose(1, std::span(&line, 1)) == drafts;
    control.observe(step);
    drafted += has_drafts ? 1 : 0;
    has_drafts = chooses;
  }
  return drafted;
}

// Chances that are wrong: 0.9 was claimed, nothing is accepted.
TEST(DraftControl, PausesWhereDraftsAreMeasuredToLose) {
  DraftControl control(default_step_estimate(), true);
  int drafted = feed(control, 5000, 1, 0, 1.2 * kMs);
  EXPECT_GT(drafted, 20);
  EXPECT_LE(0.2 * drafted, 0.0025 * 5000 * 1.01 + 2) << "the credit";
  SpeculationStats stats;
  control.report(stats);
  EXPECT_LT(stats.measured_gain, 1);
  EXPECT_GT(stats.paused_steps, 4000);
  EXPECT_NEAR(stats.plain_s[0], kMs, 0.01 * kMs);
}

// Rows are free, but each branch takes half a step more.
TEST(DraftControl, ABranchCountsForWhatItTakesBesidesItsRows) {
  RowCurve flat;
  flat.fill(1);
  DraftControl control(flat, true);
  for (int i = 0; i < 8; ++i) {
    control.observe({.sequences = 1, .rows = 1, .tokens = 1, .time_s = kMs});
  }
  const double trunk[] = {0.5, 0.2}, branch[] = {0.3};
  auto choose = [&] {
    std::array<DraftLine, 2> lines = {DraftLine{.chances = trunk},
                                      DraftLine{.chances = branch, .branch = true}};
    control.choose(1, lines);
    return std::pair(lines[0].taken, lines[1].taken);
  };
  EXPECT_EQ(choose(), std::pair(int64_t{2}, int64_t{1}));
  for (int i = 0; i < 40; ++i) {
    control.observe(
        {.sequences = 1, .rows = 4, .drafts = 3, .tokens = 2, .time_s = 1.5 * kMs, .branches = 1});
  }
  EXPECT_EQ(choose(), std::pair(int64_t{2}, int64_t{0})) << "0.3 tokens are less than half a step";
}

TEST(DraftControl, GoesOnWhereDraftsSaveTime) {
  DraftControl control(default_step_estimate(), true);
  EXPECT_GT(feed(control, 2000, 4, 2, 1.2 * kMs), 1900);
  SpeculationStats stats;
  control.report(stats);
  EXPECT_NEAR(stats.measured_gain, 2.5, 0.1);
}

TEST(DraftControl, SpendsNoMoreThanASequenceHasSaved) {
  DraftControl control(default_step_estimate(), true);
  feed(control, 4000, 1, 0, 1.5 * kMs);
  EXPECT_FALSE(control.allows(0)) << "the credit is gone";
  EXPECT_TRUE(control.allows(2 * kMs));
  const double likely[] = {0.9};
  DraftLine line{.chances = likely};
  EXPECT_EQ(control.choose(1, std::span(&line, 1)), 0);
  line.saved_s = 2 * kMs;
  EXPECT_EQ(control.choose(1, std::span(&line, 1)), 1);
  control.add_credit(2 * kMs);
  EXPECT_TRUE(control.allows(0)) << "what an ended sequence leaves";
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
    acceptance.observe(1, {0, 0.95f}, true, own);
    acceptance.observe(1, {1, 0.2f}, i % 4 == 0, own);
  }
  OwnAcceptance fresh;
  EXPECT_GT(acceptance.chance(1, {0, 0.95f}, fresh), 0.95);
  EXPECT_NEAR(acceptance.chance(1, {1, 0.2f}, fresh), 0.25, 0.1);
  EXPECT_NEAR(acceptance.chance(2, {0, 0.5f}, fresh), 0.65, 1e-9) << "nothing is known of others";
}

TEST(Acceptance, KnowsThatOneSequenceIsHarderThanTheOthers) {
  Acceptance acceptance;
  OwnAcceptance easy, hard;
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 4; ++j) acceptance.observe(1, {0, 0.9f}, true, easy);
    acceptance.observe(1, {0, 0.9f}, i % 2 == 0, hard);
  }
  EXPECT_GT(acceptance.chance(1, {0, 0.9f}, easy), 0.95);
  EXPECT_NEAR(acceptance.chance(1, {0, 0.9f}, hard), 0.5, 0.15);
  for (int i = 0; i < 300; ++i) hard.fade();
  EXPECT_NEAR(acceptance.chance(1, {0, 0.9f}, hard), 0.9, 0.05);
}

}  // namespace
}  // namespace banyan::draft_control_test
