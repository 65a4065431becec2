#include "engine/memory_plan.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "cache/radix_tree.h"
#include "engine/weight_summary.h"
#include "kernels/select.h"
#include "ops/linear.h"
#include "ops/rowwise.h"
#include "quant/formats.h"

namespace banyan {
namespace {

// Tokens whose states are kept when nobody says how many, if that is more than all sequences can
// use at once: what is not in use keeps prefixes for later.
constexpr int64_t kCachedTokens = int64_t{1} << 18;
// Of all pages, those whose windowed states are kept, if that suffices for a sequence.
constexpr int64_t kPagesPerWindowPage = 4;

// Pages within reach while a chunk of a prompt is read.
int64_t window_pages_min(const EngineInfo& info, const StateClasses& classes) {
  int64_t tokens = classes.window_tokens + info.prefill_rows_max;
  return (tokens + info.page_size_tokens - 1) / info.page_size_tokens + 1;
}

int64_t window_pages_for(int64_t pages, const EngineInfo& info, const StateClasses& classes) {
  if (classes.window_tokens == 0) return 0;
  return std::min(pages, std::max(pages / kPagesPerWindowPage, window_pages_min(info, classes)));
}

// A page in the radix tree, and its tokens.
int64_t bytes_of_pages(int64_t pages, const EngineInfo& info, const StateClasses& classes) {
  int64_t token = info.state_bytes_per_token + static_cast<int64_t>(sizeof(PrefixToken));
  int64_t page = token * info.page_size_tokens + static_cast<int64_t>(sizeof(RadixNode));
  int64_t window_page = info.state_bytes_per_window_token * info.page_size_tokens;
  return pages * page + window_pages_for(pages, info, classes) * window_page;
}

// The most pages that take `bytes` or less.
int64_t pages_within(int64_t bytes, int64_t pages_max, const EngineInfo& info,
                     const StateClasses& classes) {
  int64_t fits = 0, too_many = pages_max + 1;
  while (too_many - fits > 1) {
    int64_t pages = fits + (too_many - fits) / 2;
    (bytes_of_pages(pages, info, classes) <= bytes ? fits : too_many) = pages;
  }
  return fits;
}

// Divides what is for states: a slot for each sequence, a share for snapshots, the rest for pages,
// as many as were asked for or else as can be of use. No pages when it does not suffice.
void choose_pools(const EngineConfig& config, const StateClasses& classes, int64_t bytes,
                  EngineInfo& info) {
  int64_t page = config.page_size_tokens;
  int64_t all_sequences = (info.context_length_tokens + page - 1) / page * config.running_max;
  int64_t wanted = std::max(all_sequences, config.radix_cache ? kCachedTokens / page : 1);
  if (config.total_tokens_max > 0) wanted = std::max<int64_t>(1, config.total_tokens_max / page);
  if (classes.recurrent) {
    int64_t slot = info.state_bytes_per_sequence;
    auto share = static_cast<int64_t>(config.snapshot_fraction * static_cast<double>(bytes));
    // Beside one for each sequence: snapshots, and states before drafts.
    int64_t snapshots = config.radix_cache ? std::clamp<int64_t>(share / slot, 1, wanted) : 0;
    int64_t saved =
        std::min<int64_t>(share / slot, config.draft_tokens_max > 0 ? config.running_max : 0);
    info.slots = config.running_max + std::max(snapshots, saved);
    bytes -= info.slots * slot;
  }
  int64_t pages = pages_within(bytes, wanted, info, classes);
  if (config.total_tokens_max > 0 && pages < wanted) pages = 0;
  info.total_tokens_max = pages * page;
  info.window_tokens_max = window_pages_for(pages, info, classes) * page;
  info.state_bytes_max =
      bytes_of_pages(pages, info, classes) + info.slots * info.state_bytes_per_sequence;
}

}  // namespace

int64_t step_rows_max(const EngineConfig& config, const EngineInfo& info) {
  return info.prefill_rows_max + config.running_max;
}

PoolSizes pool_sizes(const EngineInfo& info) {
  return {.pages = info.total_tokens_max / info.page_size_tokens,
          .window_pages = info.window_tokens_max / info.page_size_tokens,
          .slots = info.slots};
}

size_t measure_step_bytes(const LoadedModel& model, const KernelTable& kernels, int64_t rows,
                          std::span<const int> auxiliary_layers) {
  KernelTable measuring = measuring_kernels(kernels);
  Arena arena;
  auto pools = StatePools::create(model.states, 1, {.slots = 1});
  CHECK(pools.has_value(), "{}", pools.error().message);
  // A span that comes after whole chunks and a block of keys, all prompt and then all answer: what
  // takes memory in some form of a layer is then measured with as many rows as there can be.
  int64_t first = kAttentionBlock;
  for (const StateSpec& state : model.states) {
    first = std::lcm(first, int64_t{state.alignment_tokens});
  }
  Batch batch;
  batch.tokens.resize(static_cast<size_t>(rows));
  batch.positions.resize(static_cast<size_t>(rows));
  batch.spans = {
      {.row_count = static_cast<int32_t>(rows), .first_position = static_cast<int32_t>(first)}};
  batch.slots = {0};
  StepImage image(host_queue());
  Comm comm(model.rank);  // which exchanges nothing
  DrawResult drawn;  // tokens of a step in flight take room
  for (int64_t prompt : {first + rows, int64_t{0}}) {
    batch.prompt_tokens = {static_cast<int32_t>(prompt)};
    arena.rewind(0);
    Step step{.kernels = measuring,
              .launch = {},
              .arena = arena,
              .pools = *pools,
              .batch = batch,
              .inputs = image.load(batch),
              .comm = comm,
              .drawn = &drawn,
              .auxiliary_layers = auxiliary_layers};
    Outputs outputs = model.model->forward(step);
    int64_t logit_rows = std::min(rows, kLogitRowsMax);
    Tensor hidden = select_rows(step, outputs.hidden, nullptr, logit_rows);
    logit_stats(step, model.model->logits(step, hidden));
  }
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
                  .parameters_active_min = model.counts.parameters_active_min,
                  .parameters_active_max = model.counts.parameters_active_max,
                  .weight_bytes = model.counts.bytes,
                  .weight_bytes_streamed = model.counts.bytes_streamed,
                  .attention_flops_per_key = m.attention_flops_per_key,
                  .prompt_attention_flops_per_key = m.prompt_attention_flops_per_key,
                  .kernels = kernels.name,
                  .threads = threads,
                  .page_size_tokens = config.page_size_tokens};
  for (const LayerInfo& layer : m.layers) info.layers.push_back({layer.mixer, layer.ffn});
  info.weights = summarise_weights(model.matrices);
  info.state_bytes_per_token = static_cast<int64_t>(state_bytes_per_token(model.states) +
                                                    state_bytes_per_window_token(model.states));
  info.state_bytes_per_sequence = static_cast<int64_t>(state_bytes_per_slot(model.states));
  info.state_bytes_per_window_token =
      static_cast<int64_t>(state_bytes_per_window_token(model.states));
  for (const StateSpec& state : model.states) {
    if (state.unit != StateUnit::kPage || !info.state_format.empty()) continue;
    const WeightFormat* format = format_of(state.dtype);
    if (format != nullptr) info.state_format = format->name;
  }
  StateClasses classes = classify_states(model.states, config.page_size_tokens);
  info.window_tokens = classes.window_tokens;
  int64_t alignment = classes.resume_alignment_tokens;
  info.prefill_rows_max = (config.chunked_prefill_tokens + alignment - 1) / alignment * alignment;
  if (info.prefill_rows_max != config.chunked_prefill_tokens) {
    spdlog::info("chunked_prefill_tokens {} becomes {}, a multiple of {}",
                 config.chunked_prefill_tokens, info.prefill_rows_max, alignment);
  }
  info.step_bytes =
      static_cast<int64_t>(measure_step_bytes(model, kernels, step_rows_max(config, info), {}));
  auto share = static_cast<int64_t>(config.memory_fraction * static_cast<double>(available_bytes));
  choose_pools(config, classes, share - info.step_bytes, info);
  return info;
}

}  // namespace banyan
