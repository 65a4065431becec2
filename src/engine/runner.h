// A loaded model with everything that a step needs: kernels, threads, state pools and the step
// arena, all reserved at load. Runs batches; knows no sequence and no policy. One thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "banyan/config.h"
#include "banyan/engine.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "base/trace_log.h"
#include "cache/state_classes.h"
#include "cache/state_pools.h"
#include "kernels/traced/traced.h"
#include "models/load.h"
#include "ops/batch.h"
#include "ops/draw.h"
#include "ops/step_inputs.h"

namespace banyan {

class Runner {
 public:
  // With `comm`, which outlives the runner, one of the ranks that run the model together: all of
  // them run the same batches, in step. With `neighbour`, it runs on that one's threads, never at
  // the same time, and leaves that one's memory alone.
  static Result<std::unique_ptr<Runner>> load(
      const EngineConfig& config, const LoadProgress& progress,
      std::span<const Family> families = registered_families(), Comm& comm = lone_rank(),
      const Runner* neighbour = nullptr);

  // Enqueues the copies that `batch` asks for, its forward pass and its draws, one row of `draws`
  // for each of batch.logit_rows. One step may be in flight meanwhile; tokens of `batch` may then
  // stand for what that step draws (Batch::kSampleOfRow). Both must live until this step is
  // collected.
  void launch(const Batch& batch, const DrawBatch& draws);

  // Waits for the step that was launched first of those in flight. Valid until another has been
  // launched after the next one.
  const DrawResults& collect();

  int64_t in_flight() const { return launched_ - collected_; }

  // Whether the model was loaded with a layer that predicts further tokens; else neither of the
  // next two may be called.
  bool predicts() const { return model_.model->predicts(); }
  // Runs that layer over `batch`, none being in flight, and keeps its outputs at batch.logit_rows
  // for the next call. Row i goes on from row `from[i]` of the last step, or, `again`, of the
  // outputs that the last call kept.
  void predict(const Batch& batch, std::span<const int32_t> from, bool again);
  // Draws from the kept outputs of these rows, one row of `draws` for each. Valid until the next
  // call.
  const DrawResults& draw_predicted(std::span<const int32_t> rows, const DrawBatch& draws);

  // Runs `batch` at once and hands out the logits of batch.logit_rows in blocks, for whom draws are
  // not enough: `first` is the index in logit_rows of the block's first row. The tensors are valid
  // during the call.
  using ConsumeLogits = FunctionRef<void(int64_t first, Tensor logits, const LogitStats& stats)>;
  void run(const Batch& batch, ConsumeLogits consume);

  // Runs `batch` and copies out the residual stream entering each of `layers` (ascending; the
  // number of layers means leaving the last) and the final hidden state. Allocates.
  struct Hidden {
    std::vector<std::vector<float>> layers;  // each [rows, hidden]
    std::vector<float> final;                // [rows, hidden]
  };
  Hidden run_hidden(const Batch& batch, std::span<const int> layers);

  // Notes from now on when layers and kernels run. Null: no longer.
  void trace(TraceLog* log);

  // See Engine::expert_counts().
  std::vector<ExpertCounts> expert_counts() const;

  const EngineInfo& info() const { return info_; }
  std::span<const MatrixRecord> matrices() const { return model_.matrices; }
  const StateClasses& classes() const { return pools_->classes(); }
  const StatePools& pools() const { return *pools_; }
  // Where they lie.
  const DeviceQueue& queue() const { return *queue_; }

 private:
  Runner() = default;
  using ConsumeStepLogits =
      FunctionRef<void(Step& step, int64_t first, Tensor logits, const LogitStats& stats)>;
  void run_step(const Batch& batch, const DrawResult* drawn, ConsumeStepLogits consume);
  // Hands logits out where the host can read them.
  void consume_on_host(int64_t first, Tensor logits, const LogitStats& stats,
                       ConsumeLogits consume);
  void publish_expert_counts();
  Step make_step(Arena& arena, const Batch& batch, std::span<const int> auxiliary_layers);

  const KernelTable* kernels_ = nullptr;
  std::unique_ptr<TracedKernels> traced_;  // over them; null: nobody profiles
  std::unique_ptr<DeviceQueue> queue_;     // of the kernels' device; outlives all that lies there
  Comm* comm_ = nullptr;
  std::shared_ptr<ThreadPool> threads_;
  LoadedModel model_;
  DeviceBlock device_expert_counts_;    // counted up by kernels, ...
  std::vector<int64_t> expert_counts_;  // ... and as of the last step; empty: nobody asked
  std::unique_ptr<StatePools> pools_;
  std::unique_ptr<StepImage> inputs_;
  Arena arena_;
  EngineInfo info_;

  struct Flight {
    std::unique_ptr<DrawImage> image;
    DrawResults results;
  };
  Flight flights_[2];  // of the steps with even and with odd numbers
  Flight prediction_;
  Tensor hidden_;     // of the last step's rows, in the arena; what follows may be dropped
  Tensor predicted_;  // outputs of predict() that are kept
  size_t after_hidden_ = 0, after_predicted_ = 0;
  int64_t launched_ = 0, collected_ = 0;
};

}  // namespace banyan
