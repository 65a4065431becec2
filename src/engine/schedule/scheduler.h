// Decides which sequences run in the next step, and over which of their positions.
//
// Continuous batching: a step has one row for each decoding sequence and a chunk of rows for
// prompts. Running prompts come first, in order of admission, then the next ones in the queue
// (engine/schedule/waiting_queue.h) while there is room. If a model resumes only from snapshots,
// spans of a prompt end at multiples of its alignment.
//
// Prefixes: an admitted sequence starts after the longest prefix in the radix tree that it can
// resume from, or follows one that is computing that prefix (engine/schedule/followers.h). Pages
// are published as soon as they are complete.
//
// Drafts (drafters/speculate.h): draft tokens may run in the same step, after the last known token
// of a sequence, in rows that prompts do not need. While prompts run, they take at most half of
// those rows. Drafts never evict another sequence's pages. Rejected rows are rolled back: pages by
// length. A state that is overwritten in place stays as it is after the last known token; the
// sequence's next step replays the accepted drafts from their log (kernels/kernel_table.h).
// Branches of drafts run on pages of their own, if rows and pages are left.
//
// Room: a sequence is admitted when free and cached pages suffice for its prompt and a share of the
// output of all running sequences. If that share turns out too small, the sequence admitted last is
// retracted: it gives its pages back, keeps its place in the queue, and reuses what is still cached
// of its work. So the sequence admitted first always makes progress, and any that fits alone
// finishes.
//
// Tiers: if a store has more of a prompt than memory does, its sequence may step aside until that
// is loaded (engine/tiers).
//
// Owns the sequences. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fair_shares.h"
#include "cache/radix_tree.h"
#include "engine/schedule/followers.h"
#include "engine/schedule/holdings.h"
#include "engine/schedule/waiting_queue.h"
#include "engine/sequence.h"

namespace banyan {

// A run of consecutive positions of a sequence.
struct PlannedSpan {
  Sequence* sequence = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  int64_t drafts = 0;    // draft tokens at the end of the span
  int64_t kept = 0;      // number of them that were accepted
  int64_t replayed = 0;  // accepted drafts before `first` that slots replay from the log
  int64_t held = 0;      // drafts before `first` that they do not replay
  int64_t end() const { return first + count; }
};

// Rows of a branch of a draft (Sequence::Branch). They come after the rows of all spans.
struct PlannedBranch {
  Sequence* sequence = nullptr;
  int path = 0;      // Sequence::Draft::path
  int64_t span = 0;  // of its trunk
  int64_t first = 0;
  int64_t count = 0;
  int64_t end() const { return first + count; }
};

// Snapshots to take of the states after `position` of spans[span].
struct PlannedCapture {
  int64_t span = 0;
  int64_t position = 0;
  UnitSet slots;
};

struct StepPlan {
  std::vector<PlannedSpan> spans;
  std::vector<PlannedBranch> branches;
  std::vector<PlannedCapture> captures;
  std::vector<UnitCopy> copies;  // made before the step, in this order
  void clear();
  // The row of the step at `position` of the sequence of spans[span], whose first row is
  // `span_row`, along the draft that the sequence follows.
  int64_t row_of(int64_t span, int64_t span_row, int64_t position) const;
};

struct SchedulerConfig {
  SchedulePolicy policy = SchedulePolicy::kFcfs;
  int aging_period = 4;
  bool radix_cache = true;
  int running_max = 1;
  int64_t prefill_rows_max = 1;  // of a step, besides one of each decoding sequence; a
                                 // multiple of the resume alignment
  int64_t snapshot_interval_tokens = 16384;
  StateClasses classes;
  UnitCounts units = {};
};

struct TierRoom;
class Tiers;

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();

  // Call before any sequence is added. Requires the radix cache.
  void use(std::unique_ptr<Tiers> tiers);
  Tiers* tiers() const { return tiers_.get(); }  // null: none

  // Queues the sequence. Requires fits_alone(sequence.tokens_max).
  void enqueue(std::unique_ptr<Sequence> sequence);
  bool fits_alone(int64_t tokens) const;
  void cancel(SequenceId id);

  // Holds this prefix: its pages, also those inserted later, are evicted only after every page that
  // is neither held nor awaited. `key` is the caller's; a second hold with the same key replaces
  // the first.
  void hold(uint64_t key, const PrefixNamespace& name_space, std::vector<PrefixToken> tokens);
  void release(uint64_t key);

  // Rows of prompts in a step in which a sequence decodes: a multiple of the resume alignment, at
  // most prefill_rows_max, which it is at first.
  void limit_prefill(int64_t rows);

  // Admits, retracts and fills `plan`, whose sequences stay valid until they are removed. Sequences
  // whose `finish` is set are skipped and keep what they hold. `in_flight`: the step planned before
  // may not have made its copies yet.
  void plan(StepPlan& plan, bool in_flight = false);
  // Plans a step that follows `before`, which is in flight, with the same spans and as many drafts
  // for each: a span goes on after whatever is accepted, and its `first` is the last place
  // possible. Reserves pages for all that may be. False if the next step should be planned
  // from scratch: others could join it, a span may pass the end of its budget or a place for a
  // snapshot, or rows or pages are missing.
  bool follow(const StepPlan& before, std::span<const int64_t> drafts, StepPlan& plan);
  // Says where the spans of such a plan are that still have a sequence: at the end of those before
  // at the latest, or exactly, if the step before is committed (null).
  static void locate(const StepPlan* before, StepPlan& plan);
  // The plan was executed, or will be before any other: its positions count as computed, its
  // captures as written, and spans say how many drafts they keep. Spans without a sequence are
  // skipped.
  void commit(const StepPlan& plan);
  // The step's tokens are known: sequences that follow a branch take over its pages, and the other
  // branches end. Before commit().
  void settle_branches(const StepPlan& plan);

  // Removes the sequence; its units are free or cached afterwards.
  std::unique_ptr<Sequence> remove(Sequence* sequence);
  // Any sequence; null if there is none.
  Sequence* any() const { return sequences_.empty() ? nullptr : sequences_.begin()->second.get(); }
  // Removes a sequence that was cancelled or whose deadline is before `now_ns`; null if none is
  // left.
  std::unique_ptr<Sequence> remove_cancelled();
  std::unique_ptr<Sequence> remove_expired(int64_t now_ns);
  bool has_deadlines() const { return !deadlines_.empty(); }
  bool removal_due(int64_t now_ns) const {
    return !cancelled_.empty() || (has_deadlines() && deadlines_.begin()->first <= now_ns);
  }

  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(sequences_.size()) - running(); }
  // Who has the sequences that wait, those included that were retracted.
  const FairShares& waiting_clients() const { return waiting_clients_; }
  // Prompt tokens still to be computed, judging by the tree now. Looks at every sequence.
  int64_t waiting_tokens() const;
  int64_t admitted() const { return admitted_; }  // first admissions and those after retraction
  int64_t retracted() const { return retracted_; }
  int64_t cached_tokens() const { return cached_tokens_; }
  RadixTree& tree() { return tree_; }
  const RadixTree& tree() const { return tree_; }
  // Aborts where an invariant does not hold.
  void check() const;

 private:
  void run_on(StepPlan& plan, bool decode);
  bool add_span(Sequence& s, StepPlan& plan);
  int64_t span_end(const Sequence& s) const;
  void take_span(Sequence& s, StepPlan& plan);
  Sequence& last_admitted() const;
  int64_t draft_rows(const StepPlan& plan) const;
  int64_t add_drafts(StepPlan& plan, int64_t rows);
  bool passes_snapshot(const Sequence& s, int64_t end) const;
  void add_branches(StepPlan& plan, int64_t rows);
  void plan_captures(StepPlan& plan);
  void count_in_flight(const UnitSet& units, int64_t change);
  bool wants_snapshot(const Sequence& s, int64_t position) const;

  void admit(StepPlan& plan);
  bool has_room(const Sequence& s, const PrefixMatch& match) const;
  int64_t pages_expected(const Sequence& s) const;
  int64_t units_expected(const Sequence& s, int unit_class) const;
  int64_t units_missing(const Sequence& s, int unit_class) const;
  bool start(Sequence& s, const PrefixMatch& match, StepPlan& plan);

  void advance_tiers(bool copies_in_flight);
  TierRoom tier_room() const;
  bool may_step_aside(const Sequence& s) const;
  bool step_aside(Sequence& s, const PrefixMatch& match);
  void look_ahead();

  void retract(Sequence& s);
  void leave_running(Sequence& s);
  void check_clients() const;

  SchedulerConfig config_;
  struct Hold {
    std::vector<PrefixToken> tokens;
    RadixNode* root = nullptr;
    PrefixWaiter waiter;
  };

  RadixTree tree_;
  std::unordered_map<uint64_t, Hold> holds_;
  Holdings holdings_;
  WaitingQueue queue_;
  Followers followers_;

  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // in order of admission
  FairShares waiting_clients_;      // of the others
  std::set<std::pair<int64_t, Sequence*>> deadlines_;
  std::vector<SequenceId> cancelled_;
  uint64_t arrivals_ = 0;
  UnitCounts in_flight_ = {};  // slots taken for captures of steps that are not committed
  int64_t prefill_rows_decoding_ = 0;
  int64_t rows_max_ = 0, rows_left_ = 0;  // of the step being planned
  int waits_left_ = 0;                    // for transfers to give way
  bool copied_ = false;                   // the plan before has copies
  double expected_share_ = 0.4;           // of the output that running sequences may still make
  int64_t admitted_ = 0;
  int64_t retracted_ = 0;
  int64_t cached_tokens_ = 0;
  SequenceId looked_at_ = 0;      // the last one that was offered before its turn
  std::unique_ptr<Tiers> tiers_;  // uses the tree, so it is destroyed first
};

}  // namespace banyan
