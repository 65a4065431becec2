#include "engine/speculate.h"

#include <algorithm>
#include <utility>

namespace banyan {
namespace {

// After so many failures in a row, pauses grow no longer.
constexpr int kFailuresMax = 7;

// None after the first failure, then 1, 3, ... and 63 steps.
int pause_after(int failures) {
  return failures == 0 ? 0 : (1 << (failures - 1)) - 1;
}

}  // namespace

void Speculator::propose(Sequence& s) {
  Sequence::Draft& draft = s.draft;
  draft.tokens.clear();
  // The last token that fits is drawn, not drafted.
  int64_t room = std::min(draft_tokens_max_, s.tokens_max - s.length() - 1);
  if (!jump_forward_ || !s.request.constraint || room <= 0) return;
  if (draft.pause > 0) {
    --draft.pause;
    return;
  }
  for (TokenId token : s.request.constraint->draft_tokens()) {
    bool fits = std::ssize(draft.tokens) < room && token >= 0 && token < vocabulary_;
    if (!fits) break;
    draft.tokens.push_back(token);
  }
}

bool Speculator::speaks(const LogitRowUse& use) {
  const Sequence& s = *use.sequence;
  if (!use.samples) return true;
  return s.finish == FinishReason::kNone && s.length() == use.position + 1 &&
         s.tokens.back() == use.token;
}

void Speculator::settle(PlannedSpan& span) {
  Sequence& s = *span.sequence;
  int64_t drawn = std::exchange(s.drawn, 0);
  if (span.drafts > 0) {
    auto tokens = std::span(s.tokens).last(static_cast<size_t>(drawn));
    auto drafts = std::span(s.draft.tokens).first(static_cast<size_t>(span.drafts));
    span.kept = std::ranges::mismatch(tokens, drafts).in1 - tokens.begin();
    ++drafts_;
    draft_tokens_ += span.drafts;
    accepted_tokens_ += span.kept;
    s.draft.failures = span.kept > 0 ? 0 : std::min(s.draft.failures + 1, kFailuresMax);
    s.draft.pause = pause_after(s.draft.failures);
  }
  if (drawn > 0 && s.finish == FinishReason::kNone) propose(s);
}

}  // namespace banyan
