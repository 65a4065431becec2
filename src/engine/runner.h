// Runs batches on a loaded model. Owns everything a step needs (kernels, threads, state pools, step
// arena), all allocated at load. It has no notion of sequences or scheduling. Engine's thread only.
//
// With EngineConfig::emulated_steps it has no weights, pools of one unit and no arena. Of the
// functions that run batches, only launch() and collect() may then be called.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "base/function_ref.h"
#include "base/threads/thread_pool.h"
#include "base/trace_log.h"
#include "cache/state_classes.h"
#include "cache/state_pools.h"
#include "engine/emulator.h"
#include "kernels/traced/traced.h"
#include "models/load.h"
#include "ops/batch.h"
#include "ops/draw.h"
#include "ops/step_inputs.h"

namespace banyan {

class Runner {
 public:
  // `comm` makes this one of several ranks that run the model together on identical batches; it
  // must outlive the runner. With `neighbour`, this runner shares that one's threads (never at the
  // same time) and leaves room for its memory.
  static Result<std::unique_ptr<Runner>> load(
      const EngineConfig& config, const LoadProgress& progress,
      std::span<const Family> families = registered_families(), Comm& comm = lone_rank(),
      const Runner* neighbour = nullptr);

  // Enqueues the copies of `batch`, its forward pass and its draws, one row of `draws` for each of
  // batch.logit_rows. One other step may be in flight; then tokens of `batch` may refer to what
  // that step draws (Batch::kSampleOfRow). Both arguments must live until the step is collected.
  void launch(const Batch& batch, const DrawBatch& draws);

  // Waits for the oldest step in flight. The result is valid until the second launch after this
  // call.
  const DrawResults& collect();

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
  void run_step(const Batch& batch, const DrawResult* drawn, ConsumeStepLogits consume);
  // Passes logits to `consume` in host memory.
  void consume_on_host(int64_t first, Tensor logits, const LogitStats& stats,
                       ConsumeLogits consume);
  void publish_expert_counts();
  Status reserve(const EngineConfig& config);
  Step make_step(Arena& arena, const Batch& batch, std::span<const int> auxiliary_layers);

  const KernelTable* kernels_ = nullptr;
  std::unique_ptr<TracedKernels> traced_;  // wraps kernels_; null unless profiling
  std::unique_ptr<DeviceQueue> queue_;     // of the kernels' device; outlives all device memory
  Comm* comm_ = nullptr;
  std::shared_ptr<ThreadPool> threads_;
  LoadedModel model_;
  DeviceBlock device_expert_counts_;    // incremented by kernels, ...
  std::vector<int64_t> expert_counts_;  // ... copied after each step; empty unless requested
  std::unique_ptr<StatePools> pools_;
  std::unique_ptr<StepImage> inputs_;
  Arena arena_;
  EngineInfo info_;
  std::unique_ptr<StepEmulator> emulator_;  // null: steps are computed

  struct Flight {
    std::unique_ptr<DrawImage> image;
    DrawResults results;
  };
  Flight flights_[2];  // steps with even and with odd numbers
  Flight prediction_;
  Tensor features_;   // of the last step's rows, in the arena; anything after it may be dropped
  Tensor predicted_;  // kept outputs of predict()
  size_t after_features_ = 0, after_predicted_ = 0;
  int64_t launched_ = 0, collected_ = 0;
};

}  // namespace banyan
