#include "engine/memory_plan.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/select.h"
#include "ops/linear.h"
#include "ops/rowwise.h"

namespace banyan {
namespace {

// Tokens that the pages hold: what was asked for, else as much as all sequences can use, cut to
// the share of memory that is for states. 0 when that does not suffice.
int64_t choose_total_tokens(const EngineConfig& config, const EngineInfo& info,
                            int64_t available_bytes) {
  int64_t page = config.page_size_tokens;
  // A model whose states are all slots has pages that cost nothing.
  int64_t page_bytes = std::max<int64_t>(1, info.state_bytes_per_token * page);
  auto share = static_cast<int64_t>(config.memory_fraction * static_cast<double>(available_bytes));
  int64_t affordable = std::max<int64_t>(0, (share - info.step_bytes) / page_bytes) * page;
  if (config.total_tokens_max > 0) {
    int64_t wanted = std::max(page, config.total_tokens_max / page * page);
    return wanted <= affordable ? wanted : 0;
  }
  int64_t wanted = (info.context_length_tokens + page - 1) / page * page * config.running_max;
  return std::min(wanted, affordable);
}

}  // namespace

int64_t step_rows_max(const EngineConfig& config) {
  return std::max(config.chunked_prefill_tokens, config.running_max);
}

size_t measure_step_bytes(const LoadedModel& model, const KernelTable& kernels, int64_t rows,
                          std::span<const int> auxiliary_layers) {
  KernelTable measuring = measuring_kernels(kernels);
  Arena arena;
  auto pools = StatePools::create(model.states, 1, {});
  CHECK(pools.has_value(), "{}", pools.error().message);
  Batch batch;
  batch.tokens.resize(static_cast<size_t>(rows));
  batch.positions.resize(static_cast<size_t>(rows));
  Step step{.kernels = measuring,
            .launch = {},
            .arena = arena,
            .pools = *pools,
            .batch = batch,
            .auxiliary_layers = auxiliary_layers};
  Outputs outputs = model.model->forward(step);
  std::vector<int32_t> logit_rows(static_cast<size_t>(std::min(rows, kLogitRowsMax)));
  logit_stats(step, model.model->logits(step, select_rows(step, outputs.hidden, logit_rows)));
  return arena.high_water_bytes();
}

Result<EngineInfo> plan_memory(const EngineConfig& config, const LoadedModel& model,
                               const KernelTable& kernels, int threads, int64_t available_bytes) {
  TRY(StatePools::create(model.states, config.page_size_tokens, {}));  // refuses unknown states
  const ModelInfo& m = model.model->info();
  if (config.context_length_tokens > m.context_length_tokens) {
    return invalid_argument("context_length {} is beyond the {} tokens that the model was made for",
                            config.context_length_tokens, m.context_length_tokens);
  }
  EngineInfo info{.architecture = m.architecture,
                  .vocabulary = m.vocabulary,
                  .hidden = m.hidden,
                  .context_length_tokens = config.context_length_tokens > 0
                                               ? config.context_length_tokens
                                               : m.context_length_tokens,
                  .tensors = model.counts.tensors,
                  .parameters_total = model.counts.parameters,
                  .parameters_active = model.counts.parameters_active,
                  .weight_bytes = model.counts.bytes,
                  .weight_bytes_streamed = model.counts.bytes_streamed,
                  .attention_flops_per_key = m.attention_flops_per_key,
                  .kernels = kernels.name,
                  .threads = threads,
                  .page_size_tokens = config.page_size_tokens};
  for (const LayerInfo& layer : m.layers) info.layers.push_back({layer.mixer, layer.ffn});
  info.state_bytes_per_token = static_cast<int64_t>(state_bytes_per_token(model.states) +
                                                    state_bytes_per_window_token(model.states));
  info.state_bytes_per_sequence = static_cast<int64_t>(state_bytes_per_slot(model.states));
  info.step_bytes =
      static_cast<int64_t>(measure_step_bytes(model, kernels, step_rows_max(config), {}));
  info.total_tokens_max = choose_total_tokens(config, info, available_bytes);
  info.state_bytes_max = info.total_tokens_max * info.state_bytes_per_token;
  return info;
}

}  // namespace banyan
