#include "engine/speculate.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace banyan {
namespace {

// What the last draft of a sequence, and of all of them, leaves of those before it.
constexpr double kSequenceMemory = 0.9, kCommonMemory = 0.98;
constexpr double kPriorTokens = 2;
// Pauses of 1, 3, ... and 63 steps.
constexpr int kPausesMax = 6;

}  // namespace

// The most tokens of which the last is still worth its row: a draft's n-th is kept with the n-th
// power of the rate.
int64_t Speculator::paying_tokens(const Sequence::Draft& draft, int64_t running) const {
  double rate = draft.survival.rate(survival_.rate(1, 1), kPriorTokens);
  running = std::max<int64_t>(running, 1);
  double cost = rejected_rows_ * static_cast<double>(running);
  double least = cost / (cost + gain_.step_rows(running));
  // The rate before any rejection is 1.
  double tokens = rate < 1 ? std::log(least) / std::log(rate) : static_cast<double>(INT32_MAX);
  return static_cast<int64_t>(std::min<double>(tokens, INT32_MAX));
}

void Speculator::propose(Sequence& s, int64_t running) {
  Sequence::Draft& draft = s.draft;
  draft.tokens.clear();
  // The last token that fits is drawn, not drafted.
  int64_t room = std::min(draft_tokens_max_, s.tokens_max - s.length() - 1);
  if (!jump_forward_ || !s.request.constraint || room <= 0 || !gain_.allows()) return;
  if (draft.pause > 0) {
    --draft.pause;
    return;
  }
  // Where none pays, one token finds out whether that is still so.
  room = std::min(room, std::max<int64_t>(paying_tokens(draft, running), 1));
  for (TokenId token : s.request.constraint->draft_tokens()) {
    bool fits = std::ssize(draft.tokens) < room && token >= 0 && token < vocabulary_;
    if (!fits) break;
    draft.tokens.push_back(token);
  }
}

void Speculator::learn(Sequence& s, const PlannedSpan& span, int64_t running) {
  ++drafts_;
  draft_tokens_ += span.drafts;
  accepted_tokens_ += span.kept;
  bool rejected = span.kept < span.drafts && s.finish == FinishReason::kNone;
  s.draft.survival.observe(span.kept, rejected, kSequenceMemory);
  survival_.observe(span.kept, rejected, kCommonMemory);
  bool pays = paying_tokens(s.draft, running) > 0;
  s.draft.pauses = pays ? 0 : std::min(s.draft.pauses + 1, kPausesMax);
  s.draft.pause = (1 << s.draft.pauses) - 1;
}

DraftGain::Step Speculator::shape(const StepPlan& plan) const {
  DraftGain::Step step;
  bool constrained = false;
  for (const PlannedSpan& span : plan.spans) {
    const Sequence* s = span.sequence;
    if (s == nullptr || span.first < s->prompt_tokens) return {};
    constrained |= s->request.constraint != nullptr;
    ++step.sequences;
    step.rows += span.count;
  }
  if (!constrained || !measures_ || !jump_forward_) return {};
  return step;
}

bool Speculator::on_path(const LogitRowUse& use) {
  const Sequence& s = *use.sequence;
  if (!use.samples) return true;
  return s.finish == FinishReason::kNone && s.length() == use.position + 1 &&
         s.tokens.back() == use.token;
}

void Speculator::settle(PlannedSpan& span, int64_t running) {
  Sequence& s = *span.sequence;
  int64_t drawn = std::exchange(s.drawn, 0);
  if (span.drafts > 0) {
    auto tokens = std::span(s.tokens).last(static_cast<size_t>(drawn));
    auto drafts = std::span(s.draft.tokens).first(static_cast<size_t>(span.drafts));
    span.kept = std::ranges::mismatch(tokens, drafts).in1 - tokens.begin();
    learn(s, span, running);
  }
  if (drawn > 0 && s.finish == FinishReason::kNone) propose(s, running);
}

}  // namespace banyan
