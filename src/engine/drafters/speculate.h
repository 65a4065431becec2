// Speculative decoding: chooses a drafter and draft length per sequence, and verifies drafts.
//
// A step computes the last known token of a sequence and its draft in one span, with logits for
// every row. Verification is by equality. Each row draws its next token as a separate step would
// (same mask, penalties and random counter); a draft token is accepted if it equals the token drawn
// before it. So drafts change only the number of steps. The Scheduler rolls back what rejected rows
// wrote.
//
// A draft starts with the tokens forced by a constraint. One drafter (engine/drafters/) continues
// it: the one with the highest expected gain, from its acceptance rate.
//
// Draft length weighs gain against cost. An accepted token saves its sequence a step, worth the
// sequence's share of the step's fixed cost. A rejected one wastes a row. So in large batches only
// near-certain tokens pay.
//
// Acceptance rates come from the sequence's earlier drafts of the same source, and from all
// sequences' while those are few. The fixed cost of a step, and whether drafting is faster at all,
// is measured (engine/drafters/draft_gain.h).
//
// Engine's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "engine/batch_builder.h"
#include "engine/drafters/draft_gain.h"
#include "engine/drafters/drafter.h"
#include "engine/schedule/scheduler.h"
#include "engine/sequence.h"

namespace banyan {

class Speculator {
 public:
  // `drafters`: at most kDraftersMax - 1, in the order of asking.
  Speculator(const EngineConfig& config, int64_t vocabulary,
             std::vector<NamedDrafter> drafters = {});

  // Proposes the tokens that a constraint forces after the prompt of `s`, one of `running`
  // sequences.
  void start(Sequence& s, int64_t running);

  // Whether the sequence may ever have drafts. If so, its next step cannot be planned before this
  // one is read.
  bool may_draft(const Sequence& s) const;

  // Whether any drafter reads step outputs, even of steps without drafts. If so, a step must be
  // read before the next is launched.
  bool reads_steps() const;

  // Whether the row's token is the sequence's last token, so that its logits are for the next one.
  static bool on_path(const LogitRowUse& use);

  // Called when all rows of the step have been read. Records how many drafts each span keeps, and
  // proposes new ones.
  void settle(StepPlan& plan, int64_t running);

  // The sequence has ended.
  void end(const Sequence& s);

  // The measurements of a step except tokens and time; call it before its sequences end.
  DraftGain::Step shape(const StepPlan& plan) const;
  void observe(const DraftGain::Step& step) { gain_.observe(step); }

  // Makes drafters drop what they keep of ended sequences.
  void forget();

  void report(EngineStats& stats) const;

 private:
  static constexpr size_t kSourcesMax = EngineStats::kDraftersMax;
  static constexpr int kForced = 0;  // forced tokens come before any drafter

  // The draft of one sequence being built.
  struct Offer {
    Sequence* sequence = nullptr;
    int64_t room = 0;  // for tokens after the forced ones
    double promise = 0;
    int source = 0;
    std::vector<TokenId> tokens;  // from the best drafter so far
    DraftTask task;               // for the drafter being asked
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
  std::vector<NamedDrafter> drafters_;
  std::array<DraftSurvival, kSourcesMax> survival_;  // acceptance rates over all sequences
  DraftGain gain_;

  // Reused by every step.
  std::vector<Sequence*> drafting_;
  std::vector<Offer> offers_;
  std::vector<DraftTask*> tasks_;
  std::vector<uint32_t> mask_;

  std::array<DrafterStats, kSourcesMax> stats_;
  std::array<int64_t, EngineStats::kDraftPositions> accepted_at_ = {};
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_tokens_ = 0;
};

}  // namespace banyan
