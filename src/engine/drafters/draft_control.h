// Decides from measured step times how many draft tokens a step verifies, over all its sequences.
//
// A step of n sequences draws n tokens, and one more for each draft token that is accepted. So with
// the draft tokens sorted by how likely they are to be accepted, the first m give a rate of
// (n + sum of m chances) / (time of a step with n + m rows); the m with the best rate is taken, 0
// where none is 1.5% better (goodput: Liu et al. 2024, arXiv:2406.14066).
//
// Two things keep that honest. A small share of the time pays for trials: lengths whose step time
// is not known or was measured long ago, and drafts where none seem to pay. And where little is
// gained, windows of steps with drafts are compared with windows without; on a loss, drafting
// pauses, and longer after each further loss.
//
// Times vary from run to run, and so may the number of steps; the tokens do not. Engine's thread
// only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/drafters/step_cost.h"

namespace banyan {

// A measured step.
struct MeasuredStep {
  int64_t sequences = 0;  // 0: not comparable, for example because it read prompts
  int64_t rows = 0;
  int64_t drafts = 0;  // rows of draft tokens
  int64_t tokens = 0;  // drawn
  double time_s = 0;   // without the drafters' time, ...
  double drafting_s = 0;
};

// The control's current estimates.
struct SpeculationStats {
  static constexpr size_t kRows = 32;

  // Recent speed with drafts over that without: as step times and acceptance predict it, and as it
  // was measured when windows with and without drafts were last compared.
  double predicted_gain = 1, measured_gain = 1;
  int64_t trial_steps = 0;   // taken to measure something
  int64_t paused_steps = 0;  // without drafts, to compare or since they made steps slower
  int64_t unpaid_steps = 0;  // without drafts, since no proposed token was worth its row
  // Time of a decode step, by sequences without drafts and by rows of one sequence with drafts,
  // from 1 on; 0: nothing measured yet.
  std::array<double, kRows> plain_s = {}, drafted_s = {};
};

// The draft of one sequence: the chance that all its tokens up to each one are accepted.
struct DraftLine {
  std::span<const double> chances;  // descending
  int64_t taken = 0;                // the answer: how many tokens to verify
};

class DraftControl {
 public:
  // Without `measures`, times are those of the estimate.
  DraftControl(const RowCurve& estimate, bool measures);

  // Whether the next step may have drafts.
  bool allows() const { return phase_ == Phase::kDrafting || !measures_; }

  // Sets DraftLine::taken for a step of `sequences` sequences. Returns the sum.
  int64_t choose(int64_t sequences, std::span<DraftLine> lines);

  // How many tokens a drafter should propose for each of the sequences whose drafts are accepted at
  // `rates`, if reading a step takes it `read_s` and each token of all sequences `pass_s`. 0: none
  // pays.
  int64_t passes(int64_t sequences, std::span<const double> rates, int64_t tokens_max,
                 double read_s, double pass_s) const;
  // The chance from which on a token pays for its row and `pass_s`.
  double price(int64_t sequences, int64_t tokens, double pass_s) const;
  // Whether a drafter that does not seem to pay is to be tried again, at `cost_s`.
  bool affords_trial(double cost_s) const;

  void observe(const MeasuredStep& step);
  void report(SpeculationStats& stats) const;

 private:
  enum class Phase : uint8_t { kDrafting, kYardstick, kPaused };
  // Time taken over time that steps without drafts take for as many tokens.
  struct Window {
    int64_t steps = 0, drafted = 0;
    double spent_s = 0, worth_s = 0, predicted = 0;
    double cost() const { return worth_s > 0 ? spent_s / worth_s : 1; }
  };
  struct Choice {
    int64_t tokens = 0;
    double rate = 0;
  };
  struct Trial {
    int64_t tokens = 0;
    double loss_s = 0;
  };

  void sort(std::span<DraftLine> lines);
  Choice best(int64_t sequences, const RowCurve& times, double plain_rate) const;
  int64_t trial(int64_t sequences, const RowCurve& times, const Choice& best);
  double loss_s(int64_t sequences, int64_t tokens, const RowCurve& times, double rate) const;
  void end_window();
  void enter(Phase phase, int64_t steps);

  const bool measures_;
  StepCost cost_;
  double budget_s_ = 0;
  int64_t since_trial_ = 0;
  // A step is chosen before the one before it is observed.
  struct Chosen {
    bool trial = false;
    double rate = 0;  // the rate expected without the trial
  };
  Chosen next_, now_;

  Phase phase_ = Phase::kDrafting;
  int64_t phase_steps_ = 0;  // steps left of the phase
  Window window_, with_;     // the current one, and the last with drafts
  int wins_ = 0, losses_ = 0;
  double predicted_gain_ = 1, measured_gain_ = 1;
  int64_t trials_ = 0, paused_steps_ = 0, unpaid_steps_ = 0;

  // Reused by choose(): lines by their next token, best first, and what the tokens add up to.
  struct Next {
    double chance;
    uint32_t line;
    bool operator<(const Next& other) const {
      return chance != other.chance ? chance < other.chance : line > other.line;
    }
  };
  std::vector<Next> heap_;
  std::vector<uint32_t> order_;  // the line of each token
  std::vector<double> sums_;     // of the chances of the first so many tokens
};

}  // namespace banyan
