// Speculative decoding: chooses a drafter and draft length per sequence, and verifies drafts.
//
// A step computes the last known token of a sequence and its draft in one span, with logits for
// every row. Verification is by equality. Each row draws its next token as a separate step would
// (same mask, penalties and random counter); a draft token is accepted if it equals the token drawn
// before it. So drafts change only the number of steps. The Scheduler rolls back what rejected rows
// wrote.
//
// A draft starts with the tokens forced by a constraint. One drafter (engine/drafters/) continues
// it: the one whose tokens are most likely to be accepted (acceptance.h). How many of the proposed
// tokens a step verifies is decided over all its sequences, from measured step times
// (draft_control.h). A drafter that runs a model is asked only while that is likely to pay.
//
// Engine's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "engine/batch_builder.h"
#include "engine/drafters/acceptance.h"
#include "engine/drafters/draft_control.h"
#include "engine/drafters/drafter.h"
#include "engine/schedule/scheduler.h"
#include "engine/sequence.h"
#include "ops/draw.h"

namespace banyan {

class Speculator {
 public:
  // `drafters`: at most EngineStats::kDraftersMax - 1, in the order of asking.
  Speculator(const EngineConfig& config, int64_t vocabulary,
             std::vector<NamedDrafter> drafters = {},
             const RowCurve& estimate = default_step_estimate(),
             std::shared_ptr<const DraftFilter> filter = nullptr);

  // Proposes the tokens that a constraint forces after the prompt of `s`, one of `running`
  // sequences.
  void start(Sequence& s, int64_t running);

  // Whether the sequence may ever have drafts. If so, its next step cannot be planned before this
  // one is read.
  bool may_draft(const Sequence& s) const;

  // Whether any drafter reads step outputs, even of steps without drafts. If so, a step must be
  // read before the next is launched.
  bool reads_steps() const;

  // How many tokens a step that follows this one unread should draft for each of its spans, if all
  // drafts of this one come from a drafter that can (Drafter::drafts_ahead) and no request's draws
  // depend on the tokens before them. Otherwise, or if it does not pay, none. Valid until the next
  // call.
  std::span<const int64_t> drafts_ahead(const StepPlan& plan);

  // Whether the row's token is the sequence's last token, so that its logits are for the next one.
  // Call it for the rows of a sequence in their order; it notes which branch the sequence follows.
  static bool follows(const LogitRowUse& use);

  // Gives sequences the drafts of a step that followed another, once it is collected: rows [drafts,
  // spans] of what the device drew.
  void take_drafts(const StepPlan& plan, const DrawResults& drafted) const;

  // Called when all rows of the step have been read. Records how many drafts each span keeps, and
  // proposes new ones, unless the step is `followed`: the one launched after it has its drafts.
  void settle(StepPlan& plan, int64_t running, bool followed = false);

  // The sequence has ended.
  void end(const Sequence& s);

  // The measurements of a step except tokens and time; call it before its sequences end.
  MeasuredStep shape(const StepPlan& plan) const;
  // A step with its tokens and its whole time, drafting included.
  void observe(MeasuredStep step);

  // Makes drafters drop what they keep of ended sequences.
  void forget();

  void report(EngineStats& stats) const;
  SpeculationStats speculation() const;

  // Called for each token of a drafter that verification has reached.
  void observe_tokens(DraftObserver observer) { observer_ = std::move(observer); }

  // For benchmarks: replaces what drafters with a model propose for recorded outputs.
  void emulate_acceptance(double rate);

 private:
  static constexpr size_t kSourcesMax = EngineStats::kDraftersMax;
  static constexpr int kForced = 0;  // forced tokens come before any drafter

  // The draft of one sequence being built.
  struct Offer {
    Sequence* sequence = nullptr;
    int64_t room = 0;    // for tokens after the forced ones
    double promise = 0;  // expected number of accepted tokens after the forced ones
    int source = 0;
    DraftTask best, task;         // from the best drafter so far, and for the one being asked
    std::vector<double> chances;  // of the whole draft
    std::vector<std::vector<double>> branch_chances;  // of Draft::branches, for their own tokens
  };
  // A mean of what drafting takes. Of the first times, which find cold caches, the shortest counts.
  struct MeanTime {
    double s = 0;
    int64_t count = 0;
    void observe(double time_s);
  };
  // What asking a drafter takes, and whether it is asked at present.
  struct Effort {
    MeanTime read, pass;  // per step, and per token of all sequences
    bool asked = true;
    int trial_asks = 0;  // left, whether they pay or not
  };

  void learn(Sequence& s, const PlannedSpan& span);
  void learn(const PlannedBranch& planned, const StepPlan& plan);
  int64_t offer_forced(Sequence& s, Offer& offer) const;
  void propose(std::span<Sequence* const> sequences, int64_t running);
  void ask(int source, std::span<Offer> offers, int64_t running);
  int64_t tokens_for(int source, std::span<const Offer> offers, int64_t running);
  bool asks(int source, Offer& offer, int64_t tokens_max) const;
  void weigh(int source, Offer& offer) const;
  void join(Offer& offer);
  void join_branch(Offer& offer, const DraftTask::Branch& from);
  void cut_forbidden(Sequence& s, std::vector<TokenId>& tokens, int64_t kept);
  void choose_lengths(std::span<Offer> offers, int64_t running);
  void choose_branches(std::span<Offer> offers);
  double rate(const Sequence& s, int source) const;
  bool serves(int source, const Sequence& s) const;
  int source_ahead() const;
  bool may_follow(const StepPlan& plan) const;
  int64_t tokens_max(const Sequence& s) const;
  void observe_drafters(const StepPlan& plan);

  const bool jump_forward_, measures_;
  const int64_t draft_tokens_max_, draft_tokens_min_, vocabulary_;
  const int branches_max_;
  std::vector<NamedDrafter> drafters_;
  Acceptance acceptance_;
  DraftObserver observer_;  // may be empty
  int source_ahead_ = kForced;
  DraftControl control_;
  std::array<Effort, kSourcesMax> efforts_;
  double drafting_s_ = 0;  // of the last step, if a drafter was asked or ran a model
  bool drafted_ = false;   // whether one was

  // Reused by every step.
  std::vector<Sequence*> drafting_;
  std::vector<Offer> offers_;
  std::vector<DraftTask*> tasks_;
  std::vector<DraftLine> lines_;
  std::vector<DraftOutcome> outcomes_;  // of the last step
  std::vector<double> rates_;
  std::vector<int64_t> drafts_ahead_;
  std::vector<uint32_t> mask_;

  std::array<DrafterStats, kSourcesMax> stats_;
  std::array<int64_t, EngineStats::kDraftPositions> accepted_at_ = {};
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_tokens_ = 0;
};

}  // namespace banyan
