#include "engine/drafters/speculate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/divide.h"
#include "base/signed.h"
#include "engine/drafters/emulated.h"
#include "engine/drafters/expected_tokens.h"
#include "kernels/follow.h"

namespace banyan {
namespace {

// Weight of a new measurement of drafting time, how many first ones there are, and how many times
// the mean one that was interrupted takes.
constexpr double kEffortWeight = 0.1, kInterrupted = 3;
constexpr int64_t kFirstEfforts = 4;
// A drafter's token has to promise this share of its price, if that includes a pass of a model.
constexpr double kPriceOfPasses = 0.8, kPriceOfTexts = 0.5;
// How often a drafter that runs a model is asked at first, and when it is tried again.
constexpr int kFirstAsks = 16, kTrialAsks = 8;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool ends_text(const Sequence& s, TokenId token) {
  const std::vector<TokenId>& stops = s.request.options.stop_token_ids;
  return std::ranges::find(stops, token) != stops.end();
}

}  // namespace

void Speculator::MeanTime::observe(double time_s) {
  if (count++ < kFirstEfforts) {
    s = count == 1 ? time_s : std::min(s, time_s);
  } else {
    s += kEffortWeight * (std::min(time_s, kInterrupted * s) - s);
  }
}

Speculator::Speculator(const EngineConfig& config, int64_t vocabulary,
                       std::vector<NamedDrafter> drafters, const RowCurve& estimate,
                       std::shared_ptr<const DraftFilter> filter)
    : jump_forward_(config.jump_forward),
      measures_(config.measure_drafts),
      draft_tokens_max_(config.draft_tokens_max),
      draft_tokens_min_(config.draft_tokens_min),
      vocabulary_(vocabulary),
      branches_max_(config.draft_topk - 1),
      drafters_(std::move(drafters)),
      acceptance_(std::move(filter)),
      control_(config.measure_drafts ? estimate : default_step_estimate(), config.measure_drafts),
      mask_(as_size(divide_up(vocabulary, 32))) {
  CHECK(drafters_.size() < kSourcesMax);
  stats_[kForced].name = "forced";
  for (size_t d = 0; d < drafters_.size(); ++d) stats_[d + 1].name = drafters_[d].name;
  for (Effort& effort : efforts_) effort.trial_asks = kFirstAsks;
  source_ahead_ = source_ahead();
}

// ---- Learning --------------------------------------------------------------------------------

// A mean over a drafter's tokens, corrected for the sequence.
double Speculator::rate(const Sequence& s, int source) const {
  return at(s.draft.sources, source).correct(acceptance_.rate(source));
}

// Tokens after a rejected one say nothing about their source.
void Speculator::learn(Sequence& s, const PlannedSpan& span) {
  ++drafts_;
  draft_tokens_ += span.drafts;
  accepted_tokens_ += span.kept;
  ++s.draft.drafts;
  s.draft.proposed += span.drafts;
  s.draft.accepted_end = span.end() - span.drafts + span.kept;
  int64_t kept = span.kept;
  if (s.draft.path > 0) kept = at(s.draft.branches, s.draft.path - 1).shared;
  bool rejected = kept < span.drafts && s.finish == FinishReason::kNone;
  int64_t reached = kept + (rejected ? 1 : 0), forced = s.draft.forced;
  double joint = 1;
  for (int64_t j = 0; j < span.drafts; ++j) {
    int source = j < forced ? kForced : s.draft.source;
    DrafterStats& stats = at(stats_, source);
    if (j == 0 || j == forced) ++stats.drafts;
    ++stats.draft_tokens;
    if (j < kept) ++stats.accepted_tokens;
    if (j < std::min<int64_t>(kept, std::ssize(accepted_at_))) ++at(accepted_at_, j);
    if (j >= reached) continue;
    float confidence = at(s.draft.confidences, j);
    joint *= confidence;  // of what is forced it is 1
    DraftToken token = {j < forced ? j : j - forced, confidence, joint};
    acceptance_.observe(source, token, j < kept, at(s.draft.sources, source));
    if (observer_ && source != kForced) observer_(stats.name, token, j < kept);
  }
}

// A branch says something if its trunk was accepted up to there.
void Speculator::learn(const PlannedBranch& planned, const StepPlan& plan) {
  Sequence& s = *planned.sequence;
  const PlannedSpan& span = at(plan.spans, planned.span);
  const Sequence::Branch& branch = at(s.draft.branches, planned.path - 1);
  bool followed = s.draft.path == planned.path;
  int64_t kept = followed ? span.kept - branch.shared : 0;
  DrafterStats& stats = at(stats_, branch.source);
  ++stats.branches;
  stats.followed_branches += followed ? 1 : 0;
  stats.draft_tokens += planned.count;
  stats.accepted_tokens += kept;
  draft_tokens_ += planned.count;
  s.draft.proposed += planned.count;
  for (int64_t j = branch.shared; j < branch.shared + kept; ++j) {
    if (j < std::ssize(accepted_at_)) ++at(accepted_at_, j);
  }
  if (span.kept < branch.shared || s.finish != FinishReason::kNone) return;
  if (s.draft.path == 0 || followed) {
    acceptance_.observe_branch(branch.confidences.front(), followed);
  }
}

MeasuredStep Speculator::shape(const StepPlan& plan) const {
  MeasuredStep step;
  bool drafting = false;
  for (const PlannedSpan& span : plan.spans) {
    const Sequence* s = span.sequence;
    if (s == nullptr || span.first < s->prompt_tokens) return {};
    drafting |= may_draft(*s);
    ++step.sequences;
    step.rows += span.count;
    step.drafts += span.drafts;
  }
  for (const PlannedBranch& branch : plan.branches) {
    step.rows += branch.count;
    step.drafts += branch.count;
    ++step.branches;
  }
  if (!drafting || !measures_) return {};
  return step;
}

void Speculator::observe(MeasuredStep step) {
  step.drafting_s = std::min(drafting_s_, step.time_s);
  step.time_s -= step.drafting_s;
  control_.observe(step);
}

// ---- Proposing -------------------------------------------------------------------------------

int64_t Speculator::tokens_max(const Sequence& s) const {
  return std::min<int64_t>(draft_tokens_max_,
                           s.request.options.draft_tokens_max.value_or(draft_tokens_max_));
}

bool Speculator::serves(int source, const Sequence& s) const {
  const NamedDrafter& drafter = at(drafters_, source - 1);
  const std::string& wanted = s.request.options.drafter;
  if (!wanted.empty()) return drafter.name == wanted;
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

// Of the drafter that drafts ahead; kForced: there is none.
int Speculator::source_ahead() const {
  auto found = std::ranges::find_if(
      drafters_, [](const NamedDrafter& drafter) { return drafter.drafter->drafts_ahead(); });
  return found == drafters_.end() ? kForced : narrow<int>(found - drafters_.begin()) + 1;
}

bool Speculator::may_follow(const StepPlan& plan) const {
  int source = source_ahead_;
  bool drafting = false;
  if (source == kForced) return false;
  for (const PlannedSpan& span : plan.spans) {
    if (span.sequence == nullptr) return false;
    const Sequence& s = *span.sequence;
    bool free = s.request.constraint == nullptr && !s.request.sampling.reads_tokens() &&
                s.recorded.empty() &&
                s.length() - s.prompt_tokens >= s.request.options.min_new_tokens;
    bool others = span.drafts > 0 && (s.draft.source != source || s.draft.forced > 0);
    if (!free || others || s.finish != FinishReason::kNone) return false;
    if (!control_.allows(s.draft.saved_s)) return false;
    drafting |= span.drafts > 0;
  }
  return drafting;
}

std::span<const int64_t> Speculator::drafts_ahead(const StepPlan& plan) {
  drafts_ahead_.clear();
  if (!may_follow(plan)) return drafts_ahead_;
  int source = source_ahead_;
  int64_t most = 0;
  rates_.clear();
  for (const PlannedSpan& span : plan.spans) {
    const Sequence& s = *span.sequence;
    drafts_ahead_.push_back(serves(source, s) ? tokens_max(s) : 0);
    if (drafts_ahead_.back() > 0) rates_.push_back(rate(s, source));
    most = std::max(most, drafts_ahead_.back());
  }
  const Effort& effort = at(efforts_, source);
  int64_t pays =
      control_.passes(std::ssize(plan.spans), rates_, most, effort.read.s, effort.pass.s);
  if (pays == 0) drafts_ahead_.clear();
  for (int64_t& drafts : drafts_ahead_) drafts = std::min(drafts, pays);
  return drafts_ahead_;
}

// Begins a draft with the forced tokens. Returns how many more may follow them.
int64_t Speculator::offer_forced(Sequence& s, Offer& offer) const {
  Sequence::Draft& draft = s.draft;
  draft.tokens.clear();
  draft.confidences.clear();
  draft.forced = 0;
  draft.source = kForced;
  draft.branch_count = draft.path = 0;
  offer.sequence = &s;
  offer.promise = 0;
  offer.chances.clear();
  offer.best.clear();
  // The last token of the budget is drawn, never drafted.
  int64_t room = std::min(tokens_max(s), s.tokens_max - s.length() - 1);
  if (room <= 0 || !control_.allows(draft.saved_s)) return 0;
  if (!jump_forward_ || !s.request.constraint) return room;
  std::span<const TokenId> forced = s.request.constraint->draft_tokens();
  double chance = 1;
  for (TokenId token : forced) {
    if (draft.forced == room || token < 0 || token >= vocabulary_) break;
    chance *= acceptance_.chance(kForced, {draft.forced}, at(draft.sources, kForced));
    offer.chances.push_back(chance);
    draft.tokens.push_back(token);
    draft.confidences.push_back(1);
    ++draft.forced;
  }
  return draft.forced == std::ssize(forced) ? room - draft.forced : 0;
}

void Speculator::start(Sequence& s, int64_t running) {
  if (offers_.empty()) offers_.resize(1);
  offer_forced(s, offers_[0]);
  choose_lengths(std::span(offers_).first(1), running);
}

void Speculator::propose(std::span<Sequence* const> sequences, int64_t running) {
  if (offers_.size() < sequences.size()) offers_.resize(sequences.size());
  std::span<Offer> offers = std::span(offers_).first(sequences.size());
  for (size_t i = 0; i < offers.size(); ++i) {
    offers[i].room = offer_forced(*sequences[i], offers[i]);
  }
  for (int source = 1; source <= std::ssize(drafters_); ++source) ask(source, offers, running);
  for (Offer& offer : offers) join(offer);
  choose_lengths(offers, running);
}

// The most tokens that the drafter should propose for a sequence; 0: it is not asked.
int64_t Speculator::tokens_for(int source, std::span<const Offer> offers, int64_t running) {
  int64_t most = 0;
  rates_.clear();
  for (const Offer& offer : offers) {
    if (offer.room == 0 || !serves(source, *offer.sequence)) continue;
    most = std::max(most, offer.room);
    rates_.push_back(rate(*offer.sequence, source));
  }
  if (most == 0 || !at(drafters_, source - 1).drafter->computes()) return most;
  Effort& effort = at(efforts_, source);
  if (!effort.asked) {
    // It must observe a step before it can be asked.
    effort.asked = control_.affords_trial(2 * (effort.read.s + effort.pass.s));
    if (effort.asked) effort.trial_asks = kTrialAsks;
    return 0;
  }
  if (effort.pass.count == 0) return 1;  // what that takes is not known yet
  int64_t tokens = control_.passes(running, rates_, most, effort.read.s, effort.pass.s);
  if (tokens > 0) return tokens;
  if (effort.trial_asks-- > 0) return 1;
  effort.asked = !measures_;
  return measures_ ? 0 : 1;
}

// Whether the drafter might beat the current offer.
bool Speculator::asks(int source, Offer& offer, int64_t tokens_max) const {
  Sequence& s = *offer.sequence;
  if (offer.room == 0 || !serves(source, s)) return false;
  DraftTask& task = offer.task;
  task.clear();
  task.sequence = &s;
  task.forced = s.draft.tokens;
  task.tokens_max = std::min(offer.room, tokens_max);
  task.acceptance = &acceptance_;
  task.source = source;
  task.branches_max = branches_max_;
  double accepted = expected_tokens(rate(s, source), static_cast<double>(task.tokens_max)) - 1;
  return accepted > offer.promise;
}

void Speculator::ask(int source, std::span<Offer> offers, int64_t running) {
  int64_t tokens_max = tokens_for(source, offers, running);
  if (tokens_max == 0) return;
  Drafter& drafter = *at(drafters_, source - 1).drafter;
  Effort& effort = at(efforts_, source);
  double price = control_.price(running, std::min(tokens_max, running), effort.pass.s);
  // The price is an estimate, and choose_lengths() decides. Tokens that it drops have cost a pass.
  double share = drafter.computes() ? kPriceOfPasses : kPriceOfTexts;
  tasks_.clear();
  for (Offer& offer : offers) {
    if (!asks(source, offer, tokens_max)) continue;
    offer.task.chance_min = price * share;
    tasks_.push_back(&offer.task);
  }
  if (tasks_.empty()) return;
  drafted_ = true;
  double began_s = now_s();
  drafter.propose(tasks_);
  double time_s = now_s() - began_s;
  at(stats_, source).time_s += time_s;
  int64_t passes = 0;
  for (Offer& offer : offers) {
    if (offer.task.tokens.empty()) continue;
    passes = std::max(passes, std::ssize(offer.task.tokens));
    weigh(source, offer);
    offer.task.clear();
  }
  effort.pass.observe(time_s / std::max<int64_t>(passes, 1));
}

// Takes the task's answer if its expected gain beats the current offer. A token that ends the text
// is not drafted, since nothing follows it.
void Speculator::weigh(int source, Offer& offer) const {
  DraftTask& task = offer.task;
  double promise = 0;
  int64_t count = 0;
  for (; count < std::min(task.tokens_max, std::ssize(task.tokens)); ++count) {
    TokenId token = at(task.tokens, count);
    if (token < 0 || token >= vocabulary_ || ends_text(*offer.sequence, token)) break;
    promise += at(task.chances, count);
  }
  if (count < std::max<int64_t>(draft_tokens_min_, 1) || promise <= offer.promise) return;
  task.tokens.resize(as_size(count));
  task.confidences.resize(as_size(count));
  task.chances.resize(as_size(count));
  std::swap(offer.best, task);
  offer.promise = promise;
  offer.source = source;
}

// Appends the best drafter's tokens to the forced ones, and its branches.
void Speculator::join(Offer& offer) {
  if (offer.best.tokens.empty()) return;
  Sequence& s = *offer.sequence;
  s.draft.source = offer.source;
  double before = offer.chances.empty() ? 1 : offer.chances.back();
  for (int64_t j = 0; j < std::ssize(offer.best.tokens); ++j) {
    s.draft.tokens.push_back(at(offer.best.tokens, j));
    s.draft.confidences.push_back(at(offer.best.confidences, j));
    offer.chances.push_back(before * at(offer.best.chances, j));
  }
  cut_forbidden(s, s.draft.tokens, s.draft.forced);
  offer.chances.resize(s.draft.tokens.size());
  for (int64_t i = 0; i < offer.best.branch_count; ++i) {
    join_branch(offer, at(offer.best.branches, i));
  }
}

// A token that ends the text, is not in the vocabulary or is forbidden ends the branch.
void Speculator::join_branch(Offer& offer, const DraftTask::Branch& from) {
  Sequence& s = *offer.sequence;
  Sequence::Draft& draft = s.draft;
  int64_t shared = draft.forced + from.after, made = draft.branch_count;
  if (shared > std::ssize(draft.tokens)) return;
  if (made == std::ssize(draft.branches)) draft.branches.emplace_back();
  if (made == std::ssize(offer.branch_chances)) offer.branch_chances.emplace_back();
  Sequence::Branch& branch = at(draft.branches, made);
  branch.shared = shared;
  branch.source = offer.source;
  auto trunk = std::span(draft.tokens).first(as_size(shared));
  branch.tokens.assign(trunk.begin(), trunk.end());
  int64_t own_max = draft.forced + offer.room - shared;
  for (TokenId token : from.tokens) {
    if (own_max-- <= 0 || token < 0 || token >= vocabulary_ || ends_text(s, token)) break;
    branch.tokens.push_back(token);
  }
  cut_forbidden(s, branch.tokens, shared);
  int64_t own = std::ssize(branch.tokens) - shared;
  if (own == 0) return;
  auto confidences = std::span(from.confidences).first(as_size(own));
  branch.confidences.assign(confidences.begin(), confidences.end());
  std::vector<double>& chances = at(offer.branch_chances, made);
  double chance = shared == 0 ? 1 : at(offer.chances, shared - 1), joint = 1;
  for (int64_t j = 0; j < from.after; ++j) joint *= at(offer.best.confidences, j);
  chances.clear();
  for (int64_t j = 0; j < own; ++j) {
    float confidence = at(branch.confidences, j);
    joint *= confidence;
    chance *= j == 0 ? acceptance_.branch_chance(confidence)
                     : acceptance_.chance(offer.source, {from.after + j, confidence, joint},
                                          at(draft.sources, offer.source));
    chances.push_back(chance);
  }
  ++draft.branch_count;
}

// Drops draft tokens after one that the constraint forbids, but `kept` of them stay.
void Speculator::cut_forbidden(Sequence& s, std::vector<TokenId>& tokens, int64_t kept) {
  if (!s.request.constraint) return;
  TokenConstraint& constraint = *s.request.constraint;
  int walked = 0;
  for (; walked < std::ssize(tokens); ++walked) {
    std::ranges::fill(mask_, 0u);
    constraint.fill_mask(mask_);
    auto token = as_size(at(tokens, walked));
    if (((mask_[token / 32] >> (token % 32)) & 1u) == 0) break;
    constraint.accept(narrow<TokenId>(token));
  }
  constraint.rollback(walked);
  tokens.resize(as_size(std::max<int64_t>(walked, kept)));
}

// Shortens the drafts to what a step of `running` sequences should verify.
void Speculator::choose_lengths(std::span<Offer> offers, int64_t running) {
  lines_.clear();
  for (Offer& offer : offers) {
    lines_.push_back({.chances = offer.chances, .saved_s = offer.sequence->draft.saved_s});
  }
  for (Offer& offer : offers) {
    for (int64_t i = 0; i < offer.sequence->draft.branch_count; ++i) {
      const std::vector<double>& chances = at(offer.branch_chances, i);
      lines_.push_back({.chances = chances, .branch = true});
    }
  }
  control_.choose(running, lines_);
  for (size_t i = 0; i < offers.size(); ++i) {
    Sequence::Draft& draft = offers[i].sequence->draft;
    int64_t taken = lines_[i].taken;
    if (taken > draft.forced && taken - draft.forced < draft_tokens_min_) taken = draft.forced;
    draft.tokens.resize(as_size(taken));
    draft.confidences.resize(as_size(taken));
    draft.forced = std::min(draft.forced, taken);
  }
  choose_branches(offers);
}

// Keeps the branches that are to be verified. One that leaves the trunk where that was cut off
// continues it.
void Speculator::choose_branches(std::span<Offer> offers) {
  size_t line = offers.size();
  for (Offer& offer : offers) {
    Sequence::Draft& draft = offer.sequence->draft;
    int taken = 0;
    for (int64_t i = 0; i < draft.branch_count; ++i) {
      Sequence::Branch& branch = at(draft.branches, i);
      int64_t own = lines_[line++].taken;
      int64_t trunk = std::ssize(draft.tokens);
      if (own == 0 || branch.shared > trunk || branch.shared + own < draft_tokens_min_) continue;
      branch.tokens.resize(as_size(branch.shared + own));
      branch.confidences.resize(as_size(own));
      if (branch.shared < trunk) {
        std::swap(branch, at(draft.branches, taken++));
      } else {
        std::swap(draft.tokens, branch.tokens);
        draft.confidences.insert(draft.confidences.end(), branch.confidences.begin(),
                                 branch.confidences.end());
        draft.source = branch.source;
      }
    }
    draft.branch_count = taken;
  }
}

// ---- Verification ----------------------------------------------------------------------------

bool Speculator::follows(const LogitRowUse& use) {
  Sequence& s = *use.sequence;
  if (!use.samples) return true;
  bool next = s.finish == FinishReason::kNone && s.length() == use.position + 1 &&
              s.tokens.back() == use.token;
  if (!next || use.path == s.draft.path) return next;
  // Only from the trunk, and only where the branch leaves it.
  int64_t first = s.length() - s.drawn + at(s.draft.branches, use.path - 1).shared;
  if (s.draft.path > 0 || use.position != first) return false;
  s.draft.path = use.path;
  return true;
}

void Speculator::take_drafts(const StepPlan& plan, const DrawResults& drafted) const {
  auto spans = std::ssize(plan.spans);
  for (int64_t i = 0; i < spans; ++i) {
    const PlannedSpan& span = at(plan.spans, i);
    if (span.sequence == nullptr) continue;
    Sequence::Draft& draft = span.sequence->draft;
    draft.tokens.clear();
    draft.confidences.clear();
    draft.branch_count = draft.path = 0;
    draft.source = source_ahead_;
    for (int64_t j = 0; j < span.drafts; ++j) {
      const DrawResult& drawn = at(drafted.rows, j * spans + i);
      TokenId token = followed_token(drawn, vocabulary_);
      draft.tokens.push_back(token);
      draft.confidences.push_back(token == drawn.token ? std::exp(drawn.logprob) : 0);
    }
  }
}

void Speculator::observe_drafters(const StepPlan& plan) {
  bool decodes = std::ranges::none_of(plan.spans, [](const PlannedSpan& span) {
    return span.sequence != nullptr && span.first < span.sequence->prompt_tokens;
  });
  // Prompts are always read: catching up later would cost more.
  bool allowed = drafting_.empty() || std::ranges::any_of(drafting_, [this](const Sequence* s) {
                   return control_.allows(s->draft.saved_s);
                 });
  for (int source = 1; source <= std::ssize(drafters_); ++source) {
    Effort& effort = at(efforts_, source);
    bool paused = !effort.asked || !allowed;
    double began_s = now_s();
    at(drafters_, source - 1).drafter->observe(plan, paused);
    double time_s = now_s() - began_s;
    at(stats_, source).time_s += time_s;
    drafted_ |= !paused && at(drafters_, source - 1).drafter->computes();
    if (decodes && !paused) effort.read.observe(time_s);
  }
}

void Speculator::settle(StepPlan& plan, int64_t running, bool followed) {
  drafting_.clear();
  outcomes_.clear();
  for (PlannedSpan& span : plan.spans) {
    if (span.sequence == nullptr) continue;
    Sequence& s = *span.sequence;
    int64_t drawn = std::exchange(s.drawn, 0);
    if (span.drafts > 0) {
      auto tokens = std::span(s.tokens).last(as_size(drawn));
      auto drafts = s.draft_path(s.draft.path);
      if (s.draft.path == 0) drafts = drafts.first(as_size(span.drafts));
      span.kept = std::ranges::mismatch(tokens, drafts).in1 - tokens.begin();
      learn(s, span);
      outcomes_.push_back({&s.draft.saved_s, span.drafts, span.kept});
    } else if (drawn > 0) {
      for (OwnAcceptance& own : s.draft.sources) own.fade();
    }
    if (drawn > 0 && s.finish == FinishReason::kNone) drafting_.push_back(&s);
  }
  for (const PlannedBranch& branch : plan.branches) {
    if (branch.sequence == nullptr) continue;
    learn(branch, plan);
    double* saved_s = &branch.sequence->draft.saved_s;
    DraftOutcome& outcome = *std::ranges::find(outcomes_, saved_s, &DraftOutcome::saved_s);
    outcome.drafts += branch.count;
    ++outcome.branches;
  }
  control_.settle(shape(plan).sequences, outcomes_);
  drafting_s_ = 0;
  if (followed) return;
  double began_s = now_s();
  drafted_ = false;
  observe_drafters(plan);
  propose(drafting_, std::max<int64_t>(running, std::ssize(drafting_)));
  // Asking nobody takes longer than short steps may lose, and must not keep drafters from being
  // asked again.
  if (drafted_) drafting_s_ = now_s() - began_s;
}

void Speculator::end(const Sequence& s) {
  control_.add_credit(s.draft.saved_s);
  for (const NamedDrafter& drafter : drafters_) drafter.drafter->end(s);
}

void Speculator::forget() {
  for (const NamedDrafter& drafter : drafters_) drafter.drafter->forget();
}

SpeculationStats Speculator::speculation() const {
  SpeculationStats stats;
  control_.report(stats);
  return stats;
}

void Speculator::emulate_acceptance(double rate) {
  for (NamedDrafter& named : drafters_) {
    if (!named.drafter->computes()) continue;
    named.drafter = emulate_acceptance_of(std::move(named.drafter), rate, vocabulary_);
  }
  source_ahead_ = source_ahead();
}

void Speculator::report(EngineStats& stats) const {
  stats.drafts = drafts_;
  stats.draft_tokens = draft_tokens_;
  stats.accepted_draft_tokens = accepted_tokens_;
  stats.drafters = stats_;
  stats.accepted_at = accepted_at_;
}

}  // namespace banyan
