// Tokens proposed ahead of the model: who proposes them, which are kept, and when a sequence is
// better left without.
//
// A step computes the last known token of a sequence and its draft in one span, every row with
// logits. Verification is equality: each row draws the token after it as it would in a step of its
// own (the mask, penalties and counter of randomness of its position), rows are read in order, and
// one counts as long as its own token is what was drawn before it. So a draft changes how many
// steps a text takes, and nothing else. What rejected rows left behind is the Scheduler's to undo.
//
// A draft begins with what a constraint forces, and goes on with what one of the drafters
// (engine/drafters/) proposes: the one that promises most, by how often its tokens were kept.
//
// How long a draft may be: a token that is kept saves its sequence a step, which is worth the
// sequence's part of what a step costs besides its rows; one that is rejected costs a row, and
// where state is recurrent, a row for one that was kept before it. So among many sequences only
// what is nearly certain pays. How likely tokens are kept is known from the sequence's drafts
// of the same source, and from all others' where there are few; what a step costs besides its rows,
// and whether drafts gain time at all, from the steps before (engine/drafters/draft_gain.h).
//
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "engine/batch_builder.h"
#include "engine/drafters/draft_gain.h"
#include "engine/drafters/drafter.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"

namespace banyan {

class Speculator {
 public:
  // `recurrent`: the model has recurrent state. `drafters`: at most kDraftersMax - 1, in the order
  // in which they are asked.
  Speculator(const EngineConfig& config, int64_t vocabulary, bool recurrent,
             std::vector<NamedDrafter> drafters = {});

  // Proposes what a constraint makes follow the prompt of `s`, one of `running` sequences.
  void start(Sequence& s, int64_t running);

  // Whether tokens may ever be proposed for the sequence: its next step must not be planned before
  // this one is read.
  bool may_draft(const Sequence& s) const;

  // Whether a drafter reads what steps leave behind, even those that draft nothing: then none may
  // be launched before the one before is read.
  bool reads_steps() const;

  // Whether the row's token is the sequence's last, so that its logits are about the next one.
  static bool on_path(const LogitRowUse& use);

  // All rows of the step have been read: says how many drafts each span keeps, and proposes new
  // ones where tokens were drawn.
  void settle(StepPlan& plan, int64_t running);

  // The sequence ends.
  void end(const Sequence& s);

  // What the step is to be compared by, before its sequences end; its tokens and time are to come.
  DraftGain::Step shape(const StepPlan& plan) const;
  void observe(const DraftGain::Step& step) { gain_.observe(step); }

  // Drafters forget what they keep of sequences that have ended.
  void forget();

  void report(EngineStats& stats) const;

 private:
  static constexpr size_t kSourcesMax = EngineStats::kDraftersMax;
  static constexpr int kForced = 0;  // the source before the drafters

  // The draft of one sequence in the making.
  struct Offer {
    Sequence* sequence = nullptr;
    int64_t room = 0;  // after the forced tokens
    double promise = 0;
    int source = 0;
    std::vector<TokenId> tokens;  // of the best drafter so far
    DraftTask task;               // of the one that is asked
  };

  void learn(Sequence& s, const PlannedSpan& span, int64_t running);
  void learn(Sequence& s, int source, int64_t drafts, int64_t kept, bool rejected, int64_t running);
  double rate(const Sequence& s, int source) const;
  int64_t paying_tokens(const Sequence& s, int source, int64_t running) const;
  static bool pauses(Sequence& s, int source);

  int64_t propose_forced(Sequence& s, int64_t running);
  void propose(std::span<Sequence* const> sequences, int64_t running);
  void ask(int source, std::span<Offer> offers, int64_t running);
  bool asks(int source, Offer& offer, int64_t running) const;
  void weigh(int source, Offer& offer) const;
  void take(Offer& offer);
  void cut_forbidden(Sequence& s);
  bool serves(int source, const Sequence& s) const;
  int64_t tokens_max(const Sequence& s) const;

  const bool jump_forward_, measures_;
  const int64_t draft_tokens_max_, draft_tokens_min_, vocabulary_;
  const double rejected_rows_;  // that a rejected token costs
  std::vector<NamedDrafter> drafters_;
  std::array<DraftSurvival, kSourcesMax> survival_;  // of all sequences
  DraftGain gain_;

  // Reused from step to step.
  std::vector<Sequence*> drafting_;
  std::vector<Offer> offers_;
  std::vector<DraftTask*> tasks_;
  std::vector<uint32_t> mask_;

  std::array<DrafterStats, kSourcesMax> stats_;
  std::array<int64_t, EngineStats::kDraftPositions> accepted_at_ = {};
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_tokens_ = 0;
};

}  // namespace banyan
