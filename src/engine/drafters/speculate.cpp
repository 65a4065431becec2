#include "engine/drafters/speculate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Decay of acceptance rates per draft: for one sequence, and over all of them.
constexpr double kSequenceMemory = 0.9, kCommonMemory = 0.98;
constexpr double kPriorTokens = 2;
// A source pauses for 1, 3, ... 63 steps.
constexpr int kPausesMax = 6;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool ends_text(const Sequence& s, TokenId token) {
  const std::vector<TokenId>& stops = s.request.options.stop_token_ids;
  return std::ranges::find(stops, token) != stops.end();
}

// Expected number of accepted tokens of a draft with `tokens` tokens.
double expected_tokens(double rate, int64_t tokens) {
  double kept = 1, all = 0;
  for (int64_t j = 0; j < tokens; ++j) all += kept *= rate;
  return all;
}

}  // namespace

Speculator::Speculator(const EngineConfig& config, int64_t vocabulary,
                       std::vector<NamedDrafter> drafters)
    : jump_forward_(config.jump_forward),
      measures_(config.measure_drafts),
      draft_tokens_max_(config.draft_tokens_max),
      draft_tokens_min_(config.draft_tokens_min),
      vocabulary_(vocabulary),
      drafters_(std::move(drafters)),
      mask_(as_size(divide_up(vocabulary, 32))) {
  CHECK(drafters_.size() < kSourcesMax);
  stats_[kForced].name = "forced";
  for (size_t d = 0; d < drafters_.size(); ++d) stats_[d + 1].name = drafters_[d].name;
}

// ---- Expected gain ---------------------------------------------------------------------------

double Speculator::rate(const Sequence& s, int source) const {
  auto i = as_size(source);
  return s.draft.sources[i].survival.rate(survival_[i].rate(1, 1), kPriorTokens);
}

// The draft length at which the last token's expected gain still covers its row. The nth token is
// accepted with probability rate^n.
int64_t Speculator::paying_tokens(const Sequence& s, int source, int64_t running) const {
  running = std::max<int64_t>(running, 1);
  auto cost = static_cast<double>(running);
  double least = cost / (cost + gain_.step_rows(running)), kept = rate(s, source);
  // The rate is 1 until the first rejection.
  double tokens = kept < 1 ? std::log(least) / std::log(kept) : static_cast<double>(INT32_MAX);
  return static_cast<int64_t>(std::min<double>(tokens, INT32_MAX));
}

// Whether the source is paused; counts this step towards the pause.
bool Speculator::pauses(Sequence& s, int source) {
  int& pause = at(s.draft.sources, source).pause;
  if (pause == 0) return false;
  --pause;
  return true;
}

void Speculator::learn(Sequence& s, const PlannedSpan& span, int64_t running) {
  ++drafts_;
  draft_tokens_ += span.drafts;
  accepted_tokens_ += span.kept;
  ++s.draft.drafts;
  s.draft.proposed += span.drafts;
  s.draft.accepted_end = span.end() - span.drafts + span.kept;
  for (size_t j = 0; j < accepted_at_.size() && static_cast<int64_t>(j) < span.kept; ++j) {
    ++accepted_at_[j];
  }
  bool rejected = span.kept < span.drafts && s.finish == FinishReason::kNone;
  int64_t forced = std::min(span.drafts, s.draft.forced);
  int64_t forced_kept = std::min(span.kept, forced);
  if (forced > 0) {
    learn(s, kForced, forced, forced_kept, rejected && forced_kept < forced, running);
  }
  // Tokens after a rejected one say nothing about their source.
  if (span.drafts == forced || forced_kept < forced) return;
  learn(s, s.draft.source, span.drafts - forced, span.kept - forced, rejected, running);
}

void Speculator::learn(Sequence& s, int source, int64_t drafts, int64_t kept, bool rejected,
                       int64_t running) {
  auto i = as_size(source);
  ++stats_[i].drafts;
  stats_[i].draft_tokens += drafts;
  stats_[i].accepted_tokens += kept;
  Sequence::Draft::Source& own = s.draft.sources[i];
  own.survival.observe(kept, rejected, kSequenceMemory);
  survival_[i].observe(kept, rejected, kCommonMemory);
  bool pays = paying_tokens(s, source, running) > 0;
  own.pauses = pays ? 0 : std::min(own.pauses + 1, kPausesMax);
  own.pause = (1 << own.pauses) - 1;
}

DraftGain::Step Speculator::shape(const StepPlan& plan) const {
  DraftGain::Step step;
  bool drafting = false;
  for (const PlannedSpan& span : plan.spans) {
    const Sequence* s = span.sequence;
    if (s == nullptr || span.first < s->prompt_tokens) return {};
    drafting |= may_draft(*s);
    ++step.sequences;
    step.rows += span.count;
  }
  if (!drafting || !measures_) return {};
  return step;
}

// ---- Proposing -------------------------------------------------------------------------------

int64_t Speculator::tokens_max(const Sequence& s) const {
  return std::min<int64_t>(draft_tokens_max_,
                           s.request.options.draft_tokens_max.value_or(draft_tokens_max_));
}

bool Speculator::serves(int source, const Sequence& s) const {
  const NamedDrafter& drafter = at(drafters_, source - 1);
  return drafter.for_all ||
         (drafter.name == kPredictionDrafter && !s.request.options.prediction_token_ids.empty());
}

bool Speculator::may_draft(const Sequence& s) const {
  if (tokens_max(s) == 0) return false;
  if (s.request.constraint && jump_forward_) return true;
  for (int source = 1; source <= std::ssize(drafters_); ++source) {
    if (serves(source, s)) return true;
  }
  return false;
}

bool Speculator::reads_steps() const {
  return std::ranges::any_of(
      drafters_, [](const NamedDrafter& drafter) { return drafter.drafter->reads_steps(); });
}

// Proposes forced tokens. Returns how many more tokens may follow them.
int64_t Speculator::propose_forced(Sequence& s, int64_t running) {
  Sequence::Draft& draft = s.draft;
  draft.tokens.clear();
  draft.forced = 0;
  draft.source = kForced;
  // The last token of the budget is drawn, never drafted.
  int64_t room = std::min(tokens_max(s), s.tokens_max - s.length() - 1);
  if (room <= 0 || !gain_.allows()) return 0;
  if (!jump_forward_ || !s.request.constraint || pauses(s, kForced)) return room;
  // If none pays off, draft one to find out whether that has changed.
  int64_t pays = std::max<int64_t>(paying_tokens(s, kForced, running), 1);
  std::span<const TokenId> forced = s.request.constraint->draft_tokens();
  for (TokenId token : forced) {
    bool fits = draft.forced < std::min(room, pays) && token >= 0 && token < vocabulary_;
    if (!fits) break;
    draft.tokens.push_back(token);
    ++draft.forced;
  }
  return draft.forced == std::ssize(forced) ? room - draft.forced : 0;
}

void Speculator::start(Sequence& s, int64_t running) {
  propose_forced(s, running);
}

void Speculator::propose(std::span<Sequence* const> sequences, int64_t running) {
  if (offers_.size() < sequences.size()) offers_.resize(sequences.size());
  size_t count = 0;
  for (Sequence* s : sequences) {
    int64_t room = propose_forced(*s, running);
    if (room == 0 || drafters_.empty()) continue;
    Offer& offer = offers_[count++];
    offer.sequence = s;
    offer.room = room;
    offer.promise = 0;
    offer.tokens.clear();
  }
  std::span<Offer> offers = std::span(offers_).first(count);
  for (int source = 1; source <= std::ssize(drafters_); ++source) ask(source, offers, running);
  for (Offer& offer : offers) take(offer);
}

// Whether the drafter might beat the current offer.
bool Speculator::asks(int source, Offer& offer, int64_t running) const {
  Sequence& s = *offer.sequence;
  if (!serves(source, s) || pauses(s, source)) return false;
  DraftTask& task = offer.task;
  int64_t pays = std::max<int64_t>(paying_tokens(s, source, running), 1);
  task.sequence = &s;
  task.forced = s.draft.tokens;
  task.tokens_max = std::min(offer.room, pays);
  task.tokens.clear();
  task.odds.clear();
  return expected_tokens(rate(s, source), task.tokens_max) > offer.promise;
}

void Speculator::ask(int source, std::span<Offer> offers, int64_t running) {
  tasks_.clear();
  for (Offer& offer : offers) {
    if (asks(source, offer, running)) tasks_.push_back(&offer.task);
  }
  if (tasks_.empty()) return;
  double began_s = now_s();
  at(drafters_, source - 1).drafter->propose(tasks_);
  at(stats_, source).time_s += now_s() - began_s;
  for (Offer& offer : offers) {
    if (!offer.task.tokens.empty()) weigh(source, offer);
    offer.task.tokens.clear();
  }
}

// Takes the task's answer if its expected gain beats the current offer. A token that ends the text
// is not drafted, since nothing follows it.
void Speculator::weigh(int source, Offer& offer) const {
  DraftTask& task = offer.task;
  double by_rate = 1, promise = 0, kept = rate(*offer.sequence, source);
  int64_t count = 0;
  for (; count < std::min(task.tokens_max, std::ssize(task.tokens)); ++count) {
    auto j = as_size(count);
    TokenId token = task.tokens[j];
    if (token < 0 || token >= vocabulary_ || ends_text(*offer.sequence, token)) break;
    by_rate *= kept;
    promise += std::min<double>(by_rate, task.odds[j]);
  }
  if (count < std::max<int64_t>(draft_tokens_min_, 1) || promise <= offer.promise) return;
  task.tokens.resize(as_size(count));
  offer.tokens.swap(task.tokens);
  offer.promise = promise;
  offer.source = source;
}

void Speculator::take(Offer& offer) {
  if (offer.tokens.empty()) return;
  Sequence& s = *offer.sequence;
  s.draft.source = offer.source;
  s.draft.tokens.insert(s.draft.tokens.end(), offer.tokens.begin(), offer.tokens.end());
  if (s.request.constraint) cut_forbidden(s);
}

// Drops draft tokens after one that the constraint forbids. Forced tokens stay.
void Speculator::cut_forbidden(Sequence& s) {
  std::vector<TokenId>& tokens = s.draft.tokens;
  TokenConstraint& constraint = *s.request.constraint;
  int walked = 0;
  for (; walked < std::ssize(tokens); ++walked) {
    std::ranges::fill(mask_, 0u);
    constraint.fill_mask(mask_);
    auto token = as_size(at(tokens, walked));
    if (((mask_[token / 32] >> (token % 32)) & 1u) == 0) break;
    constraint.accept(static_cast<TokenId>(token));
  }
  constraint.rollback(walked);
  tokens.resize(as_size(std::max<int64_t>(walked, s.draft.forced)));
}

// ---- Verification ----------------------------------------------------------------------------

bool Speculator::on_path(const LogitRowUse& use) {
  const Sequence& s = *use.sequence;
  if (!use.samples) return true;
  return s.finish == FinishReason::kNone && s.length() == use.position + 1 &&
         s.tokens.back() == use.token;
}

void Speculator::settle(StepPlan& plan, int64_t running) {
  drafting_.clear();
  for (PlannedSpan& span : plan.spans) {
    if (span.sequence == nullptr) continue;
    Sequence& s = *span.sequence;
    int64_t drawn = std::exchange(s.drawn, 0);
    if (span.drafts > 0) {
      auto tokens = std::span(s.tokens).last(as_size(drawn));
      auto drafts = slice(s.draft.tokens, 0, span.drafts);
      span.kept = std::ranges::mismatch(tokens, drafts).in1 - tokens.begin();
      learn(s, span, running);
    }
    if (drawn > 0 && s.finish == FinishReason::kNone) drafting_.push_back(&s);
  }
  for (const NamedDrafter& drafter : drafters_) drafter.drafter->observe(plan, !gain_.allows());
  propose(drafting_, running);
}

void Speculator::end(const Sequence& s) {
  for (const NamedDrafter& drafter : drafters_) drafter.drafter->end(s);
}

void Speculator::forget() {
  for (const NamedDrafter& drafter : drafters_) drafter.drafter->forget();
}

void Speculator::report(EngineStats& stats) const {
  stats.drafts = drafts_;
  stats.draft_tokens = draft_tokens_;
  stats.accepted_draft_tokens = accepted_tokens_;
  stats.drafters = stats_;
  stats.accepted_at = accepted_at_;
}

}  // namespace banyan
