// What `bench speculation` prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/bench/speculation_run.h"

namespace banyan::cli {

// One text, or several that ran together: pairs of runs with the same output.
struct SpeculationResult {
  std::string name;
  std::vector<SpeculationRun> plain, drafted;
};

// A mean over pairs with its 95% interval, which one pair alone does not have.
struct Ratio {
  double mean = 1;
  std::optional<double> low, high;
};

// Of the values' logarithms, by Student's t.
Ratio mean_ratio(const std::vector<double>& values);

// Tokens/s with drafts over tokens/s without, pair by pair.
Ratio speed_up(const SpeculationResult& result);

// Steps with so many draft tokens over all sequences, of all texts.
struct DraftedSteps {
  int64_t drafts = 0, steps = 0;
  double step_s = 0;  // the median, without proposing
  double tokens = 0;  // the mean
};

// The cost model of the LongCat-Flash report. With k draft tokens for each sequence, tokens come
//   E(k) T_target / (k T_draft + T_verify(k))
// times as fast, where E(k) = 1 + a + ... + a^k, and a is the probability that a token is accepted
// if those before it are. Times are of steps of `sequences` sequences.
struct SpeculationModel {
  int64_t sequences = 1;
  double target_s = 0;  // the median of steps without drafts
  double draft_s = 0;   // proposing, per token that was verified
  double acceptance = 0;
  std::vector<DraftedSteps> by_drafts;  // ascending

  // Of steps with `drafts` draft tokens over all sequences.
  double speed_up(const DraftedSteps& steps) const;
  // Of the steps that `result` had, with its own acceptance.
  double predict(const SpeculationResult& result) const;
};

SpeculationModel fit_speculation(const std::vector<SpeculationResult>& results);

std::string speculation_table(const std::vector<SpeculationResult>& results);
std::string explanation_table(const std::vector<SpeculationResult>& results);
Json speculation_json(const std::vector<SpeculationResult>& results);

}  // namespace banyan::cli
