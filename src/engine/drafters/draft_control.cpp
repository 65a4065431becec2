#include "engine/drafters/draft_control.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

// Drafts are verified if they promise at least this, since less is within the estimates' error.
constexpr double kGainMin = 1.015;
// Tokens less likely than this are never worth a row.
constexpr double kWorthARow = 0.02;
// The share of the time that all drafts together may lose, and how much of it, in steps without
// drafts, may be saved up. The first credit is as much.
constexpr double kLossShare = 0.0025, kCreditMax = 1.5;
// Trials leave this share of the credit to drafts that promise more, unless the credit is as full
// as the second. Only then are there trials where no draft promises to pay.
constexpr double kTrialRest = 0.5, kTrialCredit = 0.9;
// How much of what its drafts have saved a sequence keeps, in steps without drafts.
constexpr double kSavedMax = 12;
// The share of the time that trials may take beyond what the best choice takes, and how much of it
// may be saved up, in steps without drafts.
constexpr double kTrialShare = 0.004, kTrialsMax = 4, kTrialsAtFirst = 2;
constexpr int64_t kStepsBetweenTrials = 8;
// Measurements older than this many steps are repeated when a trial is affordable.
// What drafts are compared with is measured more often the less they gain: at up to this share of
// the time.
constexpr int64_t kPlainAge = 128, kPlainAgeMin = 8, kDraftedAge = 1024;
constexpr double kPlainShare = 0.004;
// The first steps have no drafts: they are what others are compared with.
constexpr int64_t kFirstPlainSteps = 4;
// A drafter that has nothing verified by then pays for its proposals all the same.
constexpr int64_t kFirstSteps = 32;
// A longer draft may pay again where step times rise in stairs; how far to look.
constexpr int64_t kPassesAhead = 4;
constexpr double kGainMemory = 0.95, kMeasuredMemory = 0.99;
// Weight of a new measurement of what branches take.
constexpr double kBranchWeight = 0.1;
// Weight of a new measurement of the bias, how fast it fades while no draft is chosen, and how far
// it may go.
constexpr double kBiasWeight = 0.2, kBiasFade = 0.01, kBiasMax = 1.2;

}  // namespace

DraftControl::DraftControl(const RowCurve& estimate, bool measures)
    : measures_(measures), cost_(estimate) {}

// ---- The rule --------------------------------------------------------------------------------

// Of the first token that is not taken yet. `branch_tokens`: the price of a branch.
double DraftControl::next_chance(const DraftLine& line, double branch_tokens) {
  return at(line.chances, line.taken) - (line.branch && line.taken == 0 ? branch_tokens : 0);
}

void DraftControl::sort(std::span<DraftLine> lines, double branch_tokens) {
  heap_.clear();
  order_.clear();
  sums_.assign(1, 0);
  saved_s_.assign(1, 0);
  for (size_t i = 0; i < lines.size(); ++i) {
    lines[i].taken = 0;
    if (!lines[i].chances.empty()) {
      heap_.push_back({next_chance(lines[i], branch_tokens), narrow<uint32_t>(i)});
    }
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty() && heap_.front().chance >= kWorthARow) {
    std::pop_heap(heap_.begin(), heap_.end());
    Next next = heap_.back();
    heap_.pop_back();
    DraftLine& line = lines[next.line];
    order_.push_back(next.line);
    sums_.push_back(sums_.back() + next.chance);
    saved_s_.push_back(saved_s_.back() + (line.taken == 0 ? line.saved_s : 0));
    if (++line.taken == std::ssize(line.chances)) continue;
    heap_.push_back({next_chance(line, branch_tokens), next.line});
    std::push_heap(heap_.begin(), heap_.end());
  }
  for (DraftLine& line : lines) line.taken = 0;
}

// If none of the first `tokens` tokens is accepted.
double DraftControl::loss_s(int64_t sequences, int64_t tokens, const RowCurve& times) const {
  return tokens > 0 ? at_rows(times, sequences + tokens) - cost_.plain_s(sequences) : 0;
}

bool DraftControl::affords(double loss_s, int64_t tokens) const {
  return !measures_ || loss_s <= credit_s_ + at(saved_s_, tokens);
}

DraftControl::Choice DraftControl::best(int64_t sequences, const RowCurve& times,
                                        double plain_rate) const {
  Choice choice{0, plain_rate};
  for (int64_t m = 1; m < std::ssize(sums_); ++m) {
    double rate = (sequences + at(sums_, m)) / (at_rows(times, sequences + m) * bias_);
    if (rate > choice.rate && affords(loss_s(sequences, m, times), m)) choice = {m, rate};
  }
  if (choice.rate < kGainMin * plain_rate) choice = {0, plain_rate};
  return choice;
}

int64_t DraftControl::choose(int64_t sequences, std::span<DraftLine> lines) {
  next_ = {};
  double branch_tokens = sequences > 0 ? sequences * branch_s_ / cost_.plain_s(sequences) : 0;
  sort(lines, branch_tokens);
  if (sequences == 0 || (measures_ && cost_.steps() < kFirstPlainSteps)) return 0;
  RowCurve times = cost_.drafted_s(sequences);
  double plain_rate = sequences / cost_.plain_s(sequences);
  token_s_ = loss_s(sequences, 1, times);
  Choice choice = best(sequences, times, plain_rate);
  predicted_gain_ = kGainMemory * predicted_gain_ + (1 - kGainMemory) * choice.rate / plain_rate;
  if (choice.tokens == 0 && !order_.empty()) ++unpaid_steps_;
  int64_t tokens = choice.tokens;
  next_.time_s = tokens > 0 ? at_rows(times, sequences + tokens) : 0;
  if (measures_ && ++since_trial_ >= kStepsBetweenTrials) {
    tokens = trial(sequences, times, choice);
    next_.trial = tokens != choice.tokens;
    if (next_.trial) next_.time_s = 0;
    if (next_.trial) next_.excess_s = excess_s(sequences, tokens, times, choice.rate);
  }
  for (int64_t m = 0; m < tokens; ++m) {
    DraftLine& line = lines[at(order_, m)];
    if (!next_.trial || !line.branch) ++line.taken;
  }
  return tokens;
}

// The expected time of a step with so many drafts, beyond what its tokens take at `rate`.
double DraftControl::excess_s(int64_t sequences, int64_t tokens, const RowCurve& times,
                              double rate) const {
  double time_s = tokens > 0 ? at_rows(times, sequences + tokens) : cost_.plain_s(sequences);
  return std::max(0.0, time_s - (sequences + at(sums_, tokens)) / rate);
}

// The best choice, or another one whose time is to be measured.
int64_t DraftControl::trial(int64_t sequences, const RowCurve& times, const Choice& best) const {
  auto excess = [&](int64_t m) { return excess_s(sequences, m, times, best.rate); };
  bool full = !tried_ || credit_s_ >= kTrialCredit * credit_max_s_;
  auto affordable = [&](int64_t m) {
    double loss = loss_s(sequences, m, times);
    return excess(m) <= trials_s_ && affords(full ? loss : loss / kTrialRest, m);
  };
  // The cheapest ones to measure; 0: none.
  int64_t unknown = 0, old = 0, offered = std::ssize(order_);
  double plain_s = cost_.plain_s(sequences);
  for (int64_t m = 1; m <= offered; ++m) {
    // Even if its rows were free?
    double rate = (sequences + at(sums_, m)) / plain_s;
    bool last = m == offered || row_bucket(sequences + m + 1) != row_bucket(sequences + m);
    if (m == best.tokens || !last || rate <= best.rate) continue;
    bool known = cost_.knows_drafted(sequences + m);
    if (known && cost_.drafted_age(sequences + m) <= kDraftedAge) continue;
    if (!affordable(m)) continue;
    int64_t& cheapest = known ? old : unknown;
    if (cheapest == 0 || excess(m) < excess(cheapest)) cheapest = m;
  }
  if (unknown > 0) return unknown;
  double gain = best.rate * plain_s / sequences - 1;
  auto age_max = std::clamp<double>(gain / kPlainShare, kPlainAgeMin, kPlainAge);
  bool stale = best.tokens > 0 && cost_.plain_age(sequences) > age_max;
  if (stale && affordable(0)) return 0;
  if (old > 0) return old;
  // By current estimates no draft pays. A trial may correct them.
  bool tries = best.tokens == 0 && offered > 0 && full && affordable(1);
  return tries ? 1 : best.tokens;
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
    int64_t rows = sequences + k * std::ssize(rates);
    // One step that was never measured: it may turn out not to pay, nor any longer one.
    bool known = !measures_ || cost_.knows_drafted(rows);
    if (k > best + (known ? kPassesAhead : 1)) break;
    double time_s = at_rows(times, rows) + cost_s;
    if (tokens / time_s > best_rate) {
      best_rate = tokens / time_s;
      best = k;
    }
    if (!known) break;
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

bool DraftControl::allows(double saved_s) const {
  return !measures_ || token_s_ <= credit_s_ + saved_s;
}

bool DraftControl::affords_trial(double cost_s) const {
  return measures_ && since_trial_ >= kStepsBetweenTrials && cost_s <= credit_s_;
}

// ---- Measurements ----------------------------------------------------------------------------

void DraftControl::add_credit(double saved_s) {
  credit_s_ = std::min(credit_s_ + saved_s, credit_max_s_);
}

// Charges the rows of drafts and gives credit for the tokens that they added, by the means of step
// times, since single steps vary. A sequence keeps what the credit has no room for; losses that its
// savings do not cover fall on the credit.
void DraftControl::settle(int64_t sequences, std::span<const DraftOutcome> outcomes) {
  if (!measures_ || !cost_.measured() || sequences == 0) return;
  int64_t drafts = 0;
  for (const DraftOutcome& outcome : outcomes) drafts += outcome.drafts;
  if (drafts == 0) return;
  double plain_s = cost_.plain_s(sequences), token_s = plain_s / sequences;
  double row_s = loss_s(sequences, drafts, cost_.drafted_s(sequences)) / drafts;
  for (const DraftOutcome& outcome : outcomes) {
    double saved_s = *outcome.saved_s + outcome.accepted * token_s - outcome.drafts * row_s -
                     outcome.branches * branch_s_;
    double before_s = credit_s_;
    add_credit(saved_s);
    *outcome.saved_s = std::clamp(saved_s - (credit_s_ - before_s), 0.0, kSavedMax * plain_s);
  }
}

void DraftControl::observe(const MeasuredStep& step) {
  Chosen chosen = std::exchange(now_, std::exchange(next_, {}));
  if (!measures_ || step.sequences == 0 || step.time_s <= 0) return;
  bool first = !cost_.measured();
  // Steps with rows other than next tokens and drafts cannot be compared.
  if (step.branches > 0) {
    double rows_s = at_rows(cost_.drafted_s(step.sequences), step.rows);
    double one_s = (step.time_s - rows_s) / step.branches;
    branch_s_ = std::max(0.0, branch_s_ + kBranchWeight * (one_s - branch_s_));
  } else if (step.rows == step.sequences + step.drafts) {
    cost_.observe(step.sequences, step.rows, step.time_s);
  }
  double plain_s = cost_.plain_s(step.sequences), all_s = step.time_s + step.drafting_s;
  credit_max_s_ = kCreditMax * plain_s;
  if (first) credit_s_ = credit_max_s_, trials_s_ = kTrialsAtFirst * plain_s;
  add_credit(kLossShare * all_s);
  trials_s_ = std::min(trials_s_ + kTrialShare * all_s - chosen.excess_s, kTrialsMax * plain_s);
  tried_ |= step.drafts > 0 || cost_.steps() > kFirstSteps;
  if (tried_) credit_s_ -= step.drafting_s;
  if (step.branches == 0) {
    double ratio = chosen.time_s > 0 ? std::min(step.time_s / chosen.time_s, kBiasMax) : 1;
    double weight = chosen.time_s > 0 ? kBiasWeight : kBiasFade;
    bias_ = std::clamp(bias_ + weight * (ratio - bias_), 1.0, kBiasMax);
  }
  if (chosen.trial) {
    ++trials_;
    since_trial_ = 0;
  }
  bool drafted = step.drafts > 0;
  if (!drafted && !allows(0)) ++paused_steps_;
  double share = static_cast<double>(step.tokens) / step.sequences;
  worth_s_ = kMeasuredMemory * worth_s_ + (drafted ? plain_s * share : step.time_s);
  spent_s_ = kMeasuredMemory * spent_s_ + all_s;
}

void DraftControl::report(SpeculationStats& stats) const {
  stats.predicted_gain = predicted_gain_;
  stats.measured_gain = spent_s_ > 0 ? worth_s_ / spent_s_ : 1;
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
