// Tokens proposed ahead of the model: who proposes them, which are kept, and when a sequence is
// better left without.
//
// A step computes the last known token of a sequence and its draft in one span, every row with
// logits. Verification is equality: each row draws the token after it as it would in a step of its
// own (the mask, penalties and counter of randomness of its position), rows are read in order, and
// one counts as long as its own token is what was drawn before it. So a draft changes how many
// steps a text takes, and nothing else. What rejected rows left behind is the Scheduler's to undo.
//
// How long a draft may be: a token that is kept saves its sequence a step, which is worth the
// sequence's part of what a step costs beside its rows; one that is rejected costs a row, and
// where state is recurrent, a row for one that was kept before it. So among many sequences only
// what is nearly certain pays. How likely tokens are kept is known from the sequence's drafts
// before, and from all others' where there are few; what a step costs besides its rows, and whether
// drafts gain time at all, from the steps before (engine/draft_gain.h).
//
// One thread.
#pragma once

#include <cstdint>

#include "banyan/config.h"
#include "engine/batch_builder.h"
#include "engine/draft_gain.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"

namespace banyan {

class Speculator {
 public:
  // `recurrent`: the model has recurrent state.
  Speculator(const EngineConfig& config, int64_t vocabulary, bool recurrent)
      : jump_forward_(config.jump_forward),
        measures_(config.measure_drafts),
        draft_tokens_max_(config.draft_tokens_max),
        vocabulary_(vocabulary),
        rejected_rows_(recurrent ? 2 : 1) {}

  // Fills s.draft for the tokens that `s` has now, one of `running` sequences.
  void propose(Sequence& s, int64_t running);

  // Whether the row's token is the sequence's last, so that its logits are about the next one.
  static bool on_path(const LogitRowUse& use);

  // All rows of the span have been read: says how many drafts it keeps, and proposes new ones if
  // tokens were drawn.
  void settle(PlannedSpan& span, int64_t running);

  // What the step is to be compared by, before its sequences end; its tokens and time are to come.
  DraftGain::Step shape(const StepPlan& plan) const;
  void observe(const DraftGain::Step& step) { gain_.observe(step); }

  int64_t drafts() const { return drafts_; }
  int64_t draft_tokens() const { return draft_tokens_; }
  int64_t accepted_tokens() const { return accepted_tokens_; }

 private:
  void learn(Sequence& s, const PlannedSpan& span, int64_t running);
  int64_t paying_tokens(const Sequence::Draft& draft, int64_t running) const;

  const bool jump_forward_, measures_;
  const int64_t draft_tokens_max_, vocabulary_;
  const double rejected_rows_;  // that a rejected token costs
  DraftSurvival survival_;      // of all sequences
  DraftGain gain_;
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_tokens_ = 0;
};

}  // namespace banyan
