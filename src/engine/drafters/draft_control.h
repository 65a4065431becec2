// Decides from measured step times how many draft tokens a step verifies, over all its sequences.
//
// A step of n sequences draws n tokens, and one more for each draft token that is accepted. So with
// the draft tokens sorted by how likely they are to be accepted, the first m give a rate of
// (n + sum of m chances) / (time of a step with n + m rows); the m with the best rate is taken, 0
// where none is 1.5% better (goodput: Liu et al. 2024, arXiv:2406.14066).
//
// An account keeps that honest. Each sequence may lose what its own drafts have saved; beyond that,
// all share a small credit, which grows by 0.25% of the time. A step has drafts only if the account
// covers the loss of all of them. So decoding with drafts takes at most 1% longer than without,
// whatever is proposed, as far as step times are known. The credit also pays for proposals that
// come to nothing, and for trials: lengths whose step time is not known or was measured long ago,
// and drafts where none seem to pay.
//
// Until the first draft has been verified, proposals are free and trials may use all of the credit:
// else a drafter that runs a model would use it up before it shows what it is worth.
//
// A branch is one more line of tokens; what it takes besides its rows is measured too, and counts
// against its first token.
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
  int64_t branches = 0;  // of drafts
};

// The control's current estimates.
struct SpeculationStats {
  static constexpr size_t kRows = 32;

  // Recent speed with drafts over that without: as step times and acceptance predict it, and as
  // measured.
  double predicted_gain = 1, measured_gain = 1;
  int64_t trial_steps = 0;   // taken to measure something
  int64_t paused_steps = 0;  // without drafts, since earlier ones have lost what they may
  int64_t unpaid_steps = 0;  // without drafts, since no proposed token was worth its row
  // Time of a decode step, by sequences without drafts and by rows of one sequence with drafts,
  // from 1 on; 0: nothing measured yet.
  std::array<double, kRows> plain_s = {}, drafted_s = {};
};

// The draft of one sequence, or a branch of it: the chance that all its tokens up to each one are
// accepted.
struct DraftLine {
  std::span<const double> chances;  // descending
  double saved_s = 0;               // by its drafts so far
  bool branch = false;
  int64_t taken = 0;  // the answer: how many tokens to verify
};

// What became of one sequence's draft.
struct DraftOutcome {
  double* saved_s = nullptr;  // updated
  int64_t drafts = 0, accepted = 0, branches = 0;
};

class DraftControl {
 public:
  // Without `measures`, times are those of the estimate.
  DraftControl(const RowCurve& estimate, bool measures);

  // Whether the account covers a draft token of a sequence whose drafts have saved so much.
  bool allows(double saved_s) const;

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

  // Settles the account of a step's drafts, before the next step is chosen and before its time is
  // known. `sequences` 0: the step is not comparable.
  void settle(int64_t sequences, std::span<const DraftOutcome> outcomes);
  void observe(const MeasuredStep& step);
  // What the drafts of a sequence that has ended have saved fills up the credit.
  void add_credit(double saved_s);
  void report(SpeculationStats& stats) const;

 private:
  struct Choice {
    int64_t tokens = 0;
    double rate = 0;
  };
  // What choose() decided for a step that is not observed yet.
  struct Chosen {
    bool trial = false;
    double excess_s = 0;  // expected, of a trial
    double time_s = 0;    // expected, of a step with drafts that is no trial
  };

  void sort(std::span<DraftLine> lines, double branch_tokens);
  static double next_chance(const DraftLine& line, double branch_tokens);
  Choice best(int64_t sequences, const RowCurve& times, double plain_rate) const;
  int64_t trial(int64_t sequences, const RowCurve& times, const Choice& best) const;
  double loss_s(int64_t sequences, int64_t tokens, const RowCurve& times) const;
  double excess_s(int64_t sequences, int64_t tokens, const RowCurve& times, double rate) const;
  bool affords(double loss_s, int64_t tokens) const;

  const bool measures_;
  StepCost cost_;
  double credit_s_ = 0, credit_max_s_ = 0;
  double trials_s_ = 0;  // what trials may take
  // Measured times of chosen lengths over what was expected: a length is chosen where its time
  // looks short, by chance too.
  double bias_ = 1;
  double branch_s_ = 0;  // what a branch takes besides its rows: it reads the context once more
  double token_s_ = 0;   // the loss by one draft token, as of the last choice
  int64_t since_trial_ = 0;
  bool tried_ = false;  // whether any draft has been verified
  Chosen next_, now_;   // a step is chosen before the one before it is observed

  double predicted_gain_ = 1;
  double worth_s_ = 0, spent_s_ = 0;  // recently: by steps without drafts, and as measured
  int64_t trials_ = 0, paused_steps_ = 0, unpaid_steps_ = 0;

  // Reused by choose(): lines by their next token, best first, and what the first so many tokens
  // add up to.
  struct Next {
    double chance;
    uint32_t line;
    bool operator<(const Next& other) const {
      return chance != other.chance ? chance < other.chance : line > other.line;
    }
  };
  std::vector<Next> heap_;
  std::vector<uint32_t> order_;  // the line of each token
  std::vector<double> sums_;     // of chances
  std::vector<double> saved_s_;  // of the lines that they belong to
};

}  // namespace banyan
