// The engine's loop: plan, launch, collect, commit.
#pragma once

#include <memory>
#include <vector>

#include "banyan/engine.h"
#include "engine/adapters/adapter_set.h"
#include "engine/announce.h"
#include "engine/assemble.h"
#include "engine/batch_builder.h"
#include "engine/drafters/speculate.h"
#include "engine/ranks/group.h"
#include "engine/runner.h"
#include "engine/schedule/prefill_pace.h"
#include "engine/schedule/scheduler.h"
#include "engine/tiers/tiers.h"

namespace banyan {

// step() is plan, launch, collect and commit in a row. Drawn tokens reach a sequence only in
// commit, and launch reads only arrays, so a device can be given the step and left alone.
//
// With overlap_schedule the next step is planned and launched before this one is collected.
// `advance` has then moved the sequences to where the step in flight leaves them, with placeholders
// for the tokens that it draws (Batch::kSampleOfRow). If a sequence turns out to end in this step,
// its end is reported and its rows in the next step are ignored. It keeps its units until that step
// is collected. A step is collected first if a constraint or a penalty needs its tokens, or if a
// cancelled request is to be delivered.
//
// With scheduler_steps, steps follow steps whose drafts the model's own layer has made and nobody
// has verified (Runner::launch_following). Such a step has the spans of the one before it, and the
// host learns where they are when that one is committed. Up to (drafts + 1) tokens a step are
// reserved for each sequence, from its last known token on: for n steps in flight (K + 1) n, no
// matter how many were accepted before.
//
// Sinks run in commit and in the delivery of cancellations. They may submit and cancel; neither
// moves a Sequence.
class Engine::Impl {
 public:
  // `ranks` null: there is one. `tiers` null: nothing is stored outside memory.
  Impl(const EngineConfig& config, std::unique_ptr<RankGroup> ranks, std::unique_ptr<Runner> runner,
       std::vector<NamedDrafter> drafters, std::shared_ptr<const DraftFilter> filter,
       std::unique_ptr<TierSetup> tiers);

  Result<SequenceId> submit(GenerateRequest request, TokenSink sink,
                            std::vector<TokenId> recorded = {});
  void emulate_acceptance(double rate) { speculator_.emulate_acceptance(rate); }
  void observe_drafts(DraftObserver observer) { speculator_.observe_tokens(std::move(observer)); }
  void cancel(SequenceId id) { scheduler_.cancel(id); }
  void flush_cache() {
    scheduler_.tree().flush();
    speculator_.forget();
  }
  void clear_cache_storage() {
    if (scheduler_.tiers() != nullptr) scheduler_.tiers()->clear();
  }
  Result<std::shared_ptr<const PackedAdapter>> pack_adapter(const AdapterSource& source) const {
    return runner_->pack_adapter(source);
  }
  AdapterSet& adapters() { return adapters_; }
  const AdapterSet& adapters() const { return adapters_; }
  void hold(uint64_t key, std::vector<TokenId> tokens) {
    scheduler_.hold(key, {}, std::move(tokens));
  }
  void release(uint64_t key) { scheduler_.release(key); }
  bool step();  // must not be called from a sink
  void trace(std::shared_ptr<TraceLog> log);
  void end_trace(TraceLog& log);

  const EngineInfo& info() const { return runner_->info(); }
  std::vector<ExpertCounts> expert_counts() const { return runner_->expert_counts(); }
  EngineStats stats() const;
  SpeculationStats speculation() const { return speculator_.speculation(); }
  const Scheduler& scheduler() const { return scheduler_; }
  EngineAssembly::Parts parts() { return {scheduler_, *runner_}; }
  KvAnnouncer* announcer() {
    if (announcer_ == nullptr) announcer_ = announce(scheduler_.tree(), info());
    return announcer_.get();
  }
  int64_t overlapped_steps() const { return overlapped_steps_; }

 private:
  bool step_once();
  bool traced_step();
  Status check_queue(const std::string& client) const;  // whether it may have another request in it
  void resume(Sequence& s) const;
  void deliver_removed();
  void deliver(std::unique_ptr<Sequence> s, FinishReason reason);

  // A step's arrays, reused.
  struct PlannedStep {
    StepPlan plan;  // sequence null: ended
    Batch batch;
    std::vector<LogitRowUse> uses;     // sequence null: ended
    std::vector<HiddenRowUse> hidden;  // likewise
    DrawBatch draws;
    Runner::DraftPasses passes;  // of a step that follows another unread
    int64_t prompt_rows = 0, launched_ns = 0;
    bool launched = false, advanced = false, follows = false;
  };

  void plan(PlannedStep& step);     // queued requests -> step
  void launch(PlannedStep& step);   // step -> in flight
  bool may_launch_ahead() const;    // while steps_[0] is in flight
  void advance(PlannedStep& step);  // sequences -> as commit leaves them, without its tokens
  void follow();                    // launches steps that follow the ones in flight
  bool launch_following();          // one more; false if that cannot be or had better not
  void locate(PlannedStep& step);   // whose step before is committed
  bool idle();                      // there is no step to plan
  void count_running(const StepPlan& plan);  // sequences of each adapter
  static int64_t prompt_rows(const StepPlan& plan);
  double prompt_operations(const StepPlan& plan) const;
  void collect();                           // waits for steps_[0]; the next step takes its place
  const DrawResults& wait();                // for steps_[0]
  void commit(const DrawResults& results);  // of steps_[0] -> sequences and events

  void accept(const DrawResults& results);
  void add_token(Sequence& s, TokenId token);
  static void know_tokens(PlannedStep& next, const DrawResults& results);
  bool pool(const DrawResults& results, size_t row);  // false: the output is not a number
  void end_prompt(Sequence& s);
  void report_progress();
  void report(size_t row, const DrawResults& results);
  FinishReason finish_reason(const Sequence& s, TokenId token) const;
  static void tell_usage(const Sequence& s, TokenEvent& event);
  void end(Sequence& s, TokenEvent event);
  static bool forget(PlannedStep& step, const Sequence& s);
  void remove_ended();

  EngineConfig config_;
  std::unique_ptr<RankGroup> ranks_;  // ends after the runner that leads it
  std::unique_ptr<Runner> runner_;
  AdapterSet adapters_;
  Scheduler scheduler_;
  std::unique_ptr<KvAnnouncer> announcer_;  // null until requested
  Speculator speculator_;
  SequenceId last_id_ = 0;
  EngineStats totals_;
  // Of the last planned step, one per sequence; they use no slot.
  std::vector<std::weak_ptr<const LoadedAdapter>> running_adapters_;
  int64_t overlapped_steps_ = 0;

  std::vector<PlannedStep> steps_;  // the one to be collected next, and those after it
  PrefillPace pace_;
  int64_t collected_ns_ = 0;      // the last step
  int64_t followed_ = 0;          // steps that follow the last planned one
  std::vector<uint8_t> on_path_;  // of each use; 0: the row of a rejected draft, ignored
  struct Ended {
    Sequence* sequence = nullptr;
    int64_t steps = 0;  // that are to be collected before it can be removed
  };
  std::vector<Ended> ended_;  // reported, with rows in steps in flight
  bool stepping_ = false;
  std::shared_ptr<TraceLog> trace_;  // null: not profiling
};

}  // namespace banyan
