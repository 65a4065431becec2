// Runs batches on a loaded model. Owns everything a step needs (kernels, threads, state pools, step
// arena), all allocated at load. It has no notion of sequences or scheduling. Engine's thread only.
//
// With EngineConfig::emulated_steps it has no weights, pools of one unit and no arena. Of the
// functions that run batches, only launch() and collect() may then be called.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "base/function_ref.h"
#include "base/os/processor_use.h"
#include "base/threads/thread_pool.h"
#include "base/trace_log.h"
#include "cache/state_classes.h"
#include "cache/state_pools.h"
#include "engine/adapters/adapter_room.h"
#include "engine/emulator.h"
#include "engine/ranks/calls.h"
#include "engine/thread_choice.h"
#include "kernels/traced/traced.h"
#include "models/load.h"
#include "ops/batch.h"
#include "ops/draw.h"
#include "ops/step_inputs.h"

namespace banyan {

class Runner {
 public:
  // `comm` makes this one of several ranks that run the model together on identical batches; it
  // must outlive the runner. All of them call this at the same time, and it fails on all or none.
  // With `neighbour`, this runner shares that one's threads (never at the same time) and leaves
  // room for its memory.
  static Result<std::unique_ptr<Runner>> load(
      const EngineConfig& config, const LoadProgress& progress,
      std::span<const Family> families = registered_families(), Comm& comm = lone_rank(),
      const Runner* neighbour = nullptr);
  ~Runner();

  // From now on rank 0 tells the others of its calls, which follow_calls() makes on their runners,
  // until this is destroyed.
  void lead();

  // Enqueues the copies of `batch`, its forward pass and its draws, one row of `draws` for each of
  // batch.logit_rows. One other step may be in flight; then tokens of `batch` may refer to what
  // that step draws (Batch::kSampleOfRow). Both arguments must live until the step is collected.
  void launch(const Batch& batch, const DrawBatch& draws);

  // How the drafts of a step are made on the device.
  struct DraftPasses {
    int64_t drafts = 0;  // the most tokens of a span
    Batch row;           // a row of each span, for the tokens after the first
    DrawBatch draws;     // [drafts, spans]
  };
  // Whether steps can be launched after steps whose drafts are not verified yet.
  bool can_follow() const;
  // Enqueues the same for a step whose spans continue those of `before`, the step launched last,
  // after whatever drafts that accepts. All rows of both draw. Drafts come from the layer of
  // predicts(). Of `batch` and `passes`, tokens, positions and the draws' noise are filled in on
  // the device: positions here are the last ones possible. Fewer than flights_max() may be in
  // flight; all arguments must live until the step is collected.
  void launch_following(const Batch& before, const Batch& batch, const DrawBatch& draws,
                        const DraftPasses& passes);
  int64_t flights_max() const { return std::ssize(flights_); }

  // Waits for the oldest step in flight; later ones go on. The result is valid until flights_max()
  // launches after its own.
  const DrawResults& collect();
  // The drafts of the step collected last, if it followed another: rows [drafts, spans].
  const DrawResults& collected_drafts() const;

  int64_t in_flight() const { return launched_ - collected_; }

  // Whether the model drafts, by its MTP layer or an EAGLE-3 head; required by the next two
  // functions.
  bool predicts() const { return model_.model->predicts(); }
  // Runs that layer over `batch` and keeps its outputs at batch.logit_rows for the next call. No
  // step may be in flight. Row i continues from row `from[i]` of the last step or, if `again`, of
  // the kept outputs.
  void predict(const Batch& batch, std::span<const int32_t> from, bool again);
  // Draws from these rows of the kept outputs, one row of `draws` for each. Valid until the next
  // call.
  const DrawResults& draw_predicted(std::span<const int32_t> rows, const DrawBatch& draws);

  // Runs `batch` synchronously and passes the logits of batch.logit_rows to `consume` in blocks,
  // for callers that need more than draws. `first` is the index in logit_rows of the block's first
  // row. The tensors are valid during the call.
  using ConsumeLogits = FunctionRef<void(int64_t first, Tensor logits, const LogitStats& stats)>;
  void run(const Batch& batch, ConsumeLogits consume);

  // Runs `batch` and copies out the inputs of each of `layers` (ascending; the number of layers
  // stands for the output of the last) and the final hidden state. Allocates.
  struct Hidden {
    std::vector<std::vector<float>> layers;  // each [rows, hidden]
    std::vector<float> final;                // [rows, hidden]
  };
  Hidden run_hidden(const Batch& batch, std::span<const int> layers);

  // Packs an adapter for this model; safe from any thread. Without room for adapters it is refused.
  Result<std::shared_ptr<const PackedAdapter>> pack_adapter(const AdapterSource& source) const;
  // From the next step on, Batch::adapters may name this slot.
  void put_adapter(int64_t slot, const PackedAdapter& adapter) { adapters_->put(slot, adapter); }

  // Records when layers and kernels run; null stops recording.
  void trace(TraceLog* log);

  // See Engine::expert_counts().
  std::vector<ExpertCounts> expert_counts() const;

  const EngineInfo& info() const { return info_; }
  // Tokens that draw_predicted() draws from: the first ones of the vocabulary.
  int64_t predicted_vocabulary() const { return model_.model->predicted_vocabulary(); }
  std::span<const MatrixRecord> matrices() const { return model_.matrices; }
  const StateClasses& classes() const { return pools_->classes(); }
  const StatePools& pools() const { return *pools_; }
  // The device queue that owns the pools' memory.
  const DeviceQueue& queue() const { return *queue_; }

 private:
  Runner() = default;
  using ConsumeStepLogits =
      FunctionRef<void(Step& step, int64_t first, Tensor logits, const LogitStats& stats)>;
  struct Image;
  struct Flight;
  void run_step(Step& step, ConsumeStepLogits consume);
  void run_step(Step& step, const DrawArgs& draws);
  void end_launch(const Image& image, Flight& flight);
  void download_hidden(Step& step, Tensor hidden);
  void compute(Step& step, const DrawArgs& draws);
  FollowDraftsArgs follow(const StepImage& after, const Batch& batch);
  void upload_samples(int64_t rows);
  void predict_after(const Batch& before, const DraftPasses& passes);
  void draw_draft(int64_t number, const DraftPasses& passes, const DrawArgs& draws);
  void draw_kept(Step& step, int64_t count, const DrawArgs& draws, int64_t first_draw,
                 FunctionRef<Tensor(int64_t first, int64_t rows)> kept);
  // Passes logits to `consume` in host memory.
  void consume_on_host(int64_t first, Tensor logits, const LogitStats& stats,
                       ConsumeLogits consume);
  void publish_expert_counts();
  template <class... Args>
  auto tell(RankCall call, const Args&... args) {
    using Sent = std::optional<RankCalls::Sent>;
    return calls_ != nullptr ? Sent(calls_->send(call, args...)) : Sent();
  }
  Status prepare(const EngineConfig& config, std::span<const Family> families,
                 const Runner* neighbour);
  Result<LoadedModel> load_dry(const EngineConfig& config, std::span<const Family> families,
                               Rank rank);
  Status load_weights(const EngineConfig& config, const LoadProgress& progress,
                      std::span<const Family> families);
  Status compare_ranks(const EngineConfig& config);
  Status plan(const EngineConfig& config, const Runner* neighbour);
  void share_units(const EngineConfig& config);
  Status reserve(const EngineConfig& config);
  Status describe_ranks(const EngineConfig& config, std::span<const Family> families);
  Step make_step(Arena& arena, const Batch& batch, const StepInputs& inputs,
                 std::span<const int> auxiliary_layers = {});
  Step make_draft_step(const Batch& batch, const StepInputs& inputs);

  const KernelTable* kernels_ = nullptr;
  std::unique_ptr<TracedKernels> traced_;  // wraps kernels_; null unless profiling
  std::unique_ptr<DeviceQueue> queue_;     // of the kernels' device; outlives all device memory
  Comm* comm_ = nullptr;
  std::unique_ptr<RankCalls> calls_;  // to the other ranks; null unless this one leads them
  std::shared_ptr<ThreadPool> threads_;
  // While others use the processors; null: always all threads.
  struct Sharing {
    explicit Sharing(int threads) : choice(threads) {}
    ThreadChoice choice;
    OtherPrograms others;
    double looked_s = 0;  // when others were last looked at
    bool told = false;
  };
  std::unique_ptr<Sharing> sharing_;
  LoadedModel model_;
  DeviceBlock device_expert_counts_;       // incremented by kernels, ...
  std::vector<int64_t> expert_counts_;     // ... copied after each step; empty unless requested
  std::unique_ptr<AdapterRoom> adapters_;  // null: no room for any
  std::unique_ptr<StatePools> pools_;
  Arena arena_;
  EngineInfo info_;
  std::unique_ptr<StepEmulator> emulator_;  // null: steps are computed

  // What kernels read and write of a step. The device runs steps one after the other, so two are
  // enough: of steps with even and with odd numbers.
  struct Image {
    explicit Image(const DeviceQueue& queue) : inputs(queue), draws(queue) {}
    StepImage inputs;
    DrawImage draws;
  };
  // What the host gets of a step.
  struct Drawn {
    explicit Drawn(const DeviceQueue& queue) : download(queue) {}
    DrawDownload download;
    HostBlock hidden;
    DrawResults results;
  };
  struct Flight {
    explicit Flight(const DeviceQueue& queue) : drawn(queue), drafted(queue) {}
    Drawn drawn, drafted;
    uint64_t mark = 0;  // its end
  };
  Image& image(int64_t step) { return *images_[static_cast<size_t>(step % 2)]; }

  std::unique_ptr<Image> images_[2];
  std::unique_ptr<Image> aside_;  // of everything else that runs
  std::vector<Flight> flights_;   // by number
  std::unique_ptr<Drawn> prediction_;
  DeviceBlock samples_;  // upload_samples()
  Tensor features_;      // of the last step's rows, in the arena; anything after it may be dropped
  Tensor predicted_;     // kept outputs of predict()
  size_t after_features_ = 0, after_predicted_ = 0;
  int64_t launched_ = 0, collected_ = 0;
};

}  // namespace banyan
