#include "engine/drafters/draft_control.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

// Drafts are verified if they promise at least this, since less is within the estimates' error, ...
constexpr double kGainMin = 1.015;
// ... and compared with steps without them if they promise less than this.
constexpr double kGainSure = 1.10;
// Tokens less likely than this are never worth a row.
constexpr double kWorthARow = 0.02;
// The share of the time for trials, and the most that is saved up, in steps without drafts.
constexpr double kTrialShare = 0.004, kCreditMax = 4, kCreditAtFirst = 2;
constexpr int64_t kStepsBetweenTrials = 8;
// Measurements older than this many steps are repeated when a trial is affordable.
constexpr int64_t kPlainAge = 256, kDraftedAge = 1024;
// The first steps have no drafts: they are what others are compared with.
constexpr int64_t kFirstPlainSteps = 2;
constexpr int64_t kWindowSteps = 64;
// Consecutive windows with drafts after each win, without them after each loss: powers of two.
constexpr int kWinsMax = 5, kLossesMax = 6;
// A longer draft may pay again where step times rise in stairs; how far to look.
constexpr int64_t kPassesAhead = 4;
constexpr double kGainMemory = 0.95;

}  // namespace

DraftControl::DraftControl(const RowCurve& estimate, bool measures)
    : measures_(measures), cost_(estimate) {
  if (measures) enter(Phase::kYardstick, kFirstPlainSteps);
}

// ---- The rule --------------------------------------------------------------------------------

void DraftControl::sort(std::span<DraftLine> lines) {
  heap_.clear();
  order_.clear();
  sums_.assign(1, 0);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i].taken = 0;
    if (!lines[i].chances.empty()) {
      heap_.push_back({lines[i].chances[0], narrow<uint32_t>(i)});
    }
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty() && heap_.front().chance >= kWorthARow) {
    std::pop_heap(heap_.begin(), heap_.end());
    Next next = heap_.back();
    heap_.pop_back();
    order_.push_back(next.line);
    sums_.push_back(sums_.back() + next.chance);
    DraftLine& line = lines[next.line];
    if (++line.taken == std::ssize(line.chances)) continue;
    heap_.push_back({at(line.chances, line.taken), next.line});
    std::push_heap(heap_.begin(), heap_.end());
  }
}

DraftControl::Choice DraftControl::best(int64_t sequences, const RowCurve& times,
                                        double plain_rate) const {
  Choice choice{0, plain_rate};
  for (int64_t m = 1; m < std::ssize(sums_); ++m) {
    double rate = (sequences + at(sums_, m)) / at_rows(times, sequences + m);
    if (rate > choice.rate) choice = {m, rate};
  }
  if (choice.rate < kGainMin * plain_rate) choice = {0, plain_rate};
  return choice;
}

int64_t DraftControl::choose(int64_t sequences, std::span<DraftLine> lines) {
  next_ = {};
  for (DraftLine& line : lines) line.taken = 0;
  if (!allows() || sequences == 0) return 0;
  sort(lines);
  RowCurve times = cost_.drafted_s(sequences);
  double plain_rate = sequences / cost_.plain_s(sequences);
  Choice choice = best(sequences, times, plain_rate);
  double gain = choice.rate / plain_rate;
  predicted_gain_ = kGainMemory * predicted_gain_ + (1 - kGainMemory) * gain;
  next_.rate = choice.rate;
  if (choice.tokens == 0 && !order_.empty()) ++unpaid_steps_;
  int64_t tokens = trial(sequences, times, choice);
  for (DraftLine& line : lines) line.taken = 0;
  for (int64_t m = 0; m < tokens; ++m) ++lines[at(order_, m)].taken;
  return tokens;
}

// The expected loss of verifying this many tokens, compared with drawing tokens at `rate`.
double DraftControl::loss_s(int64_t sequences, int64_t tokens, const RowCurve& times,
                            double rate) const {
  double time_s = tokens > 0 ? at_rows(times, sequences + tokens) : cost_.plain_s(sequences);
  return time_s - (sequences + at(sums_, tokens)) / rate;
}

// The best choice, or another one whose time is to be measured.
int64_t DraftControl::trial(int64_t sequences, const RowCurve& times, const Choice& best) {
  if (!measures_ || ++since_trial_ < kStepsBetweenTrials) return best.tokens;
  auto affordable = [&](int64_t tokens) {
    return loss_s(sequences, tokens, times, best.rate) <= budget_s_;
  };
  auto take = [&](int64_t tokens) {
    if (!affordable(tokens)) return best.tokens;
    since_trial_ = 0;
    next_.trial = true;
    ++trials_;
    return tokens;
  };
  // The cheapest ones to measure.
  Trial unknown, old;
  int64_t offered = std::ssize(order_);
  double plain_s = cost_.plain_s(sequences);
  for (int64_t m = 1; m <= offered; ++m) {
    // Even if its rows were free?
    double rate = (sequences + at(sums_, m)) / plain_s;
    bool last = m == offered || row_bucket(sequences + m + 1) != row_bucket(sequences + m);
    if (m == best.tokens || !last || rate <= best.rate) continue;
    bool known = cost_.knows_drafted(sequences + m);
    if (known && cost_.drafted_age(sequences + m) <= kDraftedAge) continue;
    Trial& cheapest = known ? old : unknown;
    double loss = loss_s(sequences, m, times, best.rate);
    if (cheapest.tokens == 0 || loss < cheapest.loss_s) cheapest = {m, loss};
  }
  if (unknown.tokens > 0 && unknown.loss_s <= budget_s_) return take(unknown.tokens);
  if (best.tokens > 0 && cost_.plain_age(sequences) > kPlainAge) return take(0);
  if (old.tokens > 0) return take(old.tokens);
  // By current estimates no draft pays. A trial may correct them.
  return best.tokens == 0 && offered > 0 ? take(1) : best.tokens;
}

int64_t DraftControl::passes(int64_t sequences, std::span<const double> rates, int64_t tokens_max,
                             double read_s, double pass_s) const {
  RowCurve times = cost_.drafted_s(sequences);
  double plain_rate = sequences / cost_.plain_s(sequences), best_rate = 0;
  double tokens = sequences, cost_s = read_s;
  int64_t best = 0;
  if (!measures_) cost_s = pass_s = 0;
  for (int64_t k = 1; k <= tokens_max; ++k) {
    for (double rate : rates) tokens += std::pow(rate, k);
    cost_s += pass_s;
    double time_s = at_rows(times, sequences + k * std::ssize(rates)) + cost_s;
    if (tokens / time_s <= best_rate) {
      if (k > best + kPassesAhead) break;
      continue;
    }
    best_rate = tokens / time_s;
    best = k;
  }
  return best_rate >= kGainMin * plain_rate ? best : 0;
}

double DraftControl::price(int64_t sequences, int64_t tokens, double pass_s) const {
  RowCurve times = cost_.drafted_s(sequences);
  double plain_s = cost_.plain_s(sequences);
  double row_s = (at_rows(times, sequences + tokens) - plain_s) / tokens;
  if (measures_) row_s += pass_s;
  return row_s * sequences / plain_s;
}

bool DraftControl::affords_trial(double cost_s) const {
  return measures_ && since_trial_ >= kStepsBetweenTrials && cost_s <= budget_s_;
}

// ---- Measurements ----------------------------------------------------------------------------

void DraftControl::observe(const MeasuredStep& step) {
  Chosen chosen = std::exchange(now_, next_);
  if (!measures_ || step.sequences == 0 || step.time_s <= 0) return;
  bool first = !cost_.measured();
  // Steps with rows other than next tokens and drafts cannot be compared.
  if (step.rows == step.sequences + step.drafts) {
    cost_.observe(step.sequences, step.rows, step.time_s);
  }
  double plain_s = cost_.plain_s(step.sequences), all_s = step.time_s + step.drafting_s;
  if (first) budget_s_ = kCreditAtFirst * plain_s;
  budget_s_ += kTrialShare * all_s;
  bool drafted = step.drafts > 0;
  if (chosen.trial) {
    budget_s_ -= std::max(0.0, step.time_s - step.tokens / chosen.rate);
  }
  budget_s_ = std::min(budget_s_, kCreditMax * plain_s);

  double per_sequence = static_cast<double>(step.tokens) / step.sequences;
  ++window_.steps;
  window_.drafted += drafted ? 1 : 0;
  window_.spent_s += all_s;
  window_.worth_s += plain_s * per_sequence;
  window_.predicted += predicted_gain_;
  if (phase_ != Phase::kDrafting) ++paused_steps_;
  if (--phase_steps_ <= 0) end_window();
}

void DraftControl::enter(Phase phase, int64_t steps) {
  phase_ = phase;
  phase_steps_ = steps;
  window_ = {};
}

// After a window with drafts: nothing to compare if they clearly pay, or if there were none.
void DraftControl::end_window() {
  if (phase_ == Phase::kDrafting) {
    double predicted = window_.predicted / window_.steps;
    bool sure = predicted >= kGainSure && window_.cost() < 1;
    if (window_.drafted * 4 < window_.steps || sure) {
      if (window_.drafted > 0) measured_gain_ = 1 / window_.cost();
      return enter(Phase::kDrafting, kWindowSteps);
    }
    with_ = window_;
    return enter(Phase::kYardstick, kWindowSteps);
  }
  if (phase_ == Phase::kPaused || with_.steps == 0) return enter(Phase::kDrafting, kWindowSteps);
  measured_gain_ = window_.cost() / with_.cost();
  if (measured_gain_ >= 1) {
    losses_ = 0;
    wins_ = std::min(wins_ + 1, kWinsMax);
    return enter(Phase::kDrafting, kWindowSteps << wins_);
  }
  wins_ = 0;
  int64_t windows = (int64_t{1} << std::min(losses_++, kLossesMax)) - 1;
  // The baseline was the first of the windows without drafts.
  enter(windows > 0 ? Phase::kPaused : Phase::kDrafting,
        windows > 0 ? kWindowSteps * windows : kWindowSteps);
}

void DraftControl::report(SpeculationStats& stats) const {
  stats.predicted_gain = predicted_gain_;
  stats.measured_gain = measured_gain_;
  stats.trial_steps = trials_;
  stats.paused_steps = paused_steps_;
  stats.unpaid_steps = unpaid_steps_;
  if (!cost_.measured()) return;
  for (size_t i = 0; i < stats.plain_s.size(); ++i) {
    auto rows = static_cast<int64_t>(i) + 1;
    stats.plain_s[i] = cost_.plain_s(rows);
  }
  RowCurve times = cost_.drafted_s(1);
  for (size_t i = 0; i < stats.drafted_s.size(); ++i) {
    stats.drafted_s[i] = at_rows(times, i + 1);
  }
}

}  // namespace banyan
