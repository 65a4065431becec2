#include "engine/startup/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "base/units.h"
#include "cache/radix_tree.h"
#include "engine/startup/weight_summary.h"
#include "kernels/select.h"
#include "ops/linear.h"
#include "ops/rowwise.h"
#include "quant/formats.h"

namespace banyan {
namespace {

// The default size of the KV cache in tokens, if all sequences together can use less. The rest
// caches prefixes.
constexpr int64_t kCachedTokens = int64_t{1} << 18;
// One window page per this many pages, if that suffices for one sequence.
constexpr int64_t kPagesPerWindowPage = 4;

// Divides the memory for states among the unit classes.
class PoolPlan {
 public:
  PoolPlan(const EngineConfig& config, const StateClasses& classes,
           std::span<const StateSpec> states, const EngineInfo& info)
      : config_(config), classes_(classes), info_(info), unit_bytes_(unit_bytes(states, classes)) {}

  // Allocates slots for each sequence, a share for snapshots, and the rest to pages: as many as
  // requested, or as are useful. No pages if the memory does not suffice.
  void choose(int64_t bytes);
  void take(const UnitCounts& units);
  void report(EngineInfo& info, std::span<const StateSpec> states) const;

 private:
  void choose_slots(int64_t share, int64_t snapshots_max);
  int64_t pages_of(const UnitClass& unit_class, int64_t path_pages) const;
  int64_t bytes_of_pages(int64_t path_pages) const;
  int64_t pages_within(int64_t bytes, int64_t pages_max) const;
  int64_t bytes_of(int unit_class, int64_t units) const {
    return at(unit_bytes_, unit_class) * (units + (classes_[unit_class].has_blank() ? 1 : 0));
  }
  int64_t pages_for(int64_t tokens) const { return divide_up(tokens, info_.page_size_tokens); }

  const EngineConfig& config_;
  const StateClasses& classes_;
  const EngineInfo& info_;
  UnitCounts unit_bytes_;
  UnitCounts units_ = {};
  int64_t bytes_ = 0;
};

// Window classes get at least what a prefill chunk can reach.
int64_t PoolPlan::pages_of(const UnitClass& unit_class, int64_t path_pages) const {
  if (!unit_class.windowed()) return path_pages;
  int64_t least = pages_for(unit_class.window_tokens + info_.prefill_rows_max) + 1;
  return std::min(path_pages, std::max(path_pages / kPagesPerWindowPage, least));
}

int64_t PoolPlan::bytes_of_pages(int64_t path_pages) const {
  int64_t bytes = path_pages * RadixTree::node_bytes(classes_);
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].paged()) bytes += bytes_of(c, pages_of(classes_[c], path_pages));
  }
  return bytes;
}

// The largest number of pages that fits into `bytes`.
int64_t PoolPlan::pages_within(int64_t bytes, int64_t pages_max) const {
  int64_t fits = 0, too_many = pages_max + 1;
  while (too_many - fits > 1) {
    int64_t pages = fits + (too_many - fits) / 2;
    (bytes_of_pages(pages) <= bytes ? fits : too_many) = pages;
  }
  return fits;
}

// One slot per sequence. Classes with snapshots also get as many of these as `share` bytes hold.
void PoolPlan::choose_slots(int64_t share, int64_t snapshots_max) {
  int64_t snapshot_bytes = 0;
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].snapshots()) snapshot_bytes += at(unit_bytes_, c);
  }
  int64_t fit = snapshot_bytes > 0 ? share / snapshot_bytes : 0;
  int64_t kept = config_.radix_cache ? std::clamp<int64_t>(fit, 1, snapshots_max) : 0;
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].paged()) continue;
    int64_t extra = classes_[c].snapshots() ? kept : 0;
    at(units_, c) = config_.running_max + extra;
    bytes_ += bytes_of(c, config_.running_max + extra);
  }
}

void PoolPlan::choose(int64_t bytes) {
  int64_t page = info_.page_size_tokens;
  int64_t all_sequences = pages_for(info_.context_length_tokens) * config_.running_max;
  int64_t wanted = std::max(all_sequences, config_.radix_cache ? kCachedTokens / page : 1);
  if (config_.total_tokens_max > 0) wanted = std::max<int64_t>(1, config_.total_tokens_max / page);
  choose_slots(static_cast<int64_t>(config_.snapshot_fraction * bytes), wanted);
  int64_t pages = pages_within(bytes - bytes_, wanted);
  if (config_.total_tokens_max > 0 && pages < wanted) pages = 0;
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].paged()) at(units_, c) = pages_of(classes_[c], pages);
  }
  bytes_ += bytes_of_pages(pages);
}

void PoolPlan::take(const UnitCounts& units) {
  units_ = units;
  bytes_ = units_[kPathClass] * RadixTree::node_bytes(classes_);
  for (int c = 0; c < classes_.count; ++c) bytes_ += bytes_of(c, at(units_, c));
}

void PoolPlan::report(EngineInfo& info, std::span<const StateSpec> states) const {
  int64_t page = info.page_size_tokens, path_bytes = 0, window_bytes = 0, index_bytes = 0;
  for (const StateSpec& state : states) {
    if (state.index) index_bytes += state.unit_bytes(page);
  }
  info.index_bytes_per_token = (index_bytes + page - 1) / page;
  info.state_classes.clear();
  info.window_tokens = 0;
  for (int c = 0; c < classes_.count; ++c) {
    int64_t units = at(units_, c), bytes = at(unit_bytes_, c);
    info.state_classes.push_back({describe(classes_[c]), bytes, units});
    (classes_[c].windowed() ? window_bytes : path_bytes) += classes_[c].paged() ? bytes : 0;
    if (classes_[c].windowed() && classes_[c].window_tokens > info.window_tokens) {
      info.window_tokens = classes_[c].window_tokens;
      info.window_tokens_max = units * page;
    }
    if (classes_[c].snapshots() && classes_[c].decides()) {
      info.slots = units;
      info.state_bytes_per_sequence = bytes;
    }
  }
  info.state_bytes_per_token = divide_up(path_bytes + window_bytes, page);
  info.state_bytes_per_window_token = divide_up(window_bytes, page);
  info.total_tokens_max = units_[kPathClass] * page;
  info.state_bytes_max = bytes_;
}

}  // namespace

// Quantised KV rows are converted to f32 for products.
static void describe_pages(DType dtype, EngineInfo& info) {
  info.kv_cache_dtype = dtype == DType::kI8 ? "int8" : "fp8_e4m3";
  info.state_format = "f32";
  const WeightFormat* format = format_of(dtype);
  if (format != nullptr) info.kv_cache_dtype = info.state_format = format->name;
}

int64_t step_rows_max(const EngineConfig& config, const EngineInfo& info) {
  return info.prefill_rows_max + config.running_max;
}

UnitCounts unit_counts(const EngineInfo& info) {
  UnitCounts counts = {};
  std::ranges::transform(info.state_classes, counts.begin(), &StateClassSummary::units);
  return counts;
}

// Measures the most that Runner::predict() and draw_predicted() allocate after a step.
static void measure_prediction(Step& step, const Model& model, Tensor features) {
  int64_t rows = features.dim(0), logit_rows = std::min(rows, kLogitRowsMax);
  Tensor kept = step.allocate({rows, model.predicted_width()});
  size_t mark = step.arena.mark();
  step.arena.allocate_array<int32_t>(rows);
  Tensor from = select_rows(step, features, nullptr, rows);
  select_rows(step, model.predict(step, from), nullptr, rows);
  step.arena.rewind(mark);
  step.arena.allocate_array<int32_t>(rows);
  logit_stats(step, model.predicted_logits(step, select_rows(step, kept, nullptr, logit_rows)));
}

// Every slot with every matrix.
static AdapterTable with_all(AdapterTable table) {
  for (AdapterProduct& product : table.products) {
    for (AdapterProduct::Part& part : product.parts) std::ranges::fill(part.used, uint8_t{1});
  }
  return table;
}

size_t measure_step_bytes(const LoadedModel& model, const KernelTable& kernels, int64_t rows,
                          std::span<const int> auxiliary_layers, const AdapterTable* adapters) {
  KernelTable measuring = measuring_kernels(kernels);
  Arena arena;
  UnitCounts units;
  units.fill(1);
  auto pools = StatePools::create(model.states, 1, units);
  CHECK(pools.has_value(), "{}", pools.error().message);
  // Measures the worst case: a span after whole chunks and a block of keys, once as prompt and once
  // as generation. Every form of a layer then sees the largest number of rows.
  int64_t first = kAttentionBlock;
  for (const StateSpec& state : model.states) {
    first = std::lcm(first, int64_t{state.alignment_tokens});
  }
  // If an index chooses keys, that span comes after more keys than it chooses. Rows that see all
  // keys, each of another sequence, make as many latents into keys as there can be.
  auto span_rows = narrow<int32_t>(rows);
  int64_t chosen = model.model->info().index_top_k;
  auto begin = narrow<int32_t>(first * (chosen / first + 1));
  std::vector<SpanArgs> one = {{.row_count = span_rows, .first_position = begin}}, each;
  auto last = narrow<int32_t>(std::min(chosen, first) - 1);
  for (int32_t row = 0; row < span_rows && chosen > 0; ++row) {
    each.push_back({.row_begin = row, .row_count = 1, .first_position = last});
  }
  Batch batch;
  batch.tokens.resize(as_size(rows));
  batch.positions.resize(as_size(rows));
  StepImage image(host_queue());
  Comm comm(model.rank);  // exchanges nothing
  AdapterTable adapted = adapters != nullptr ? with_all(*adapters) : AdapterTable();
  DrawResult drawn;  // the step in flight keeps its tokens in the arena
  auto measure = [&](const std::vector<SpanArgs>& spans, bool prompt, int32_t adapter = -1) {
    batch.spans = spans;
    batch.adapters.assign(spans.size(), adapter);
    batch.prompt_tokens.clear();
    for (const SpanArgs& span : spans) {
      batch.prompt_tokens.push_back(prompt ? span.first_position + span.row_count : 0);
    }
    for (int c = 0; c < pools->classes().count; ++c) {
      if (!pools->classes()[c].paged()) at(batch.tables, c).units.assign(spans.size(), 0);
    }
    arena.rewind(0);
    Step step{.kernels = measuring,
              .launch = {},
              .arena = arena,
              .pools = *pools,
              .batch = batch,
              .inputs = image.load(batch),
              .comm = comm,
              .adapters = adapters != nullptr ? &adapted : nullptr,
              .drawn = &drawn,
              .auxiliary_layers = auxiliary_layers};
    Outputs outputs = model.model->forward(step);
    int64_t logit_rows = std::min(rows, kLogitRowsMax);
    Tensor hidden = select_rows(step, outputs.hidden, nullptr, logit_rows);
    size_t mark = arena.mark();
    logit_stats(step, model.model->logits(step, hidden));
    arena.rewind(mark);
    if (!outputs.features.empty() && model.model->predicts())
      measure_prediction(step, *model.model, outputs.features);
  };
  for (int32_t adapter = -1; adapter < (adapters != nullptr ? 1 : 0); ++adapter) {  // of all rows
    for (bool prompt : {true, false}) measure(one, prompt, adapter);
  }
  if (chosen > 0) {
    measure({{.row_count = span_rows}}, true);
    measure(each, true);
  }
  return arena.high_water_bytes();
}

std::unique_ptr<AdapterRoom> adapter_room(const EngineConfig& config, const LoadedModel& model,
                                          const KernelTable& kernels) {
  if (config.adapters_max == 0) return nullptr;
  return std::make_unique<AdapterRoom>(model.adapter_sites, model.dtype, kernels,
                                       config.adapters_max, config.adapter_rank_max);
}

void set_units(const EngineConfig& config, const LoadedModel& model, const UnitCounts& units,
               EngineInfo& info) {
  auto classes = classify_states(model.states, config.page_size_tokens);
  CHECK(classes.has_value(), "{}", classes.error().message);  // they are planned
  PoolPlan pools(config, *classes, model.states, info);
  pools.take(units);
  pools.report(info, model.states);
}

Result<EngineInfo> plan_memory(const EngineConfig& config, const LoadedModel& model,
                               const KernelTable& kernels, int threads, int64_t available_bytes) {
  const ModelInfo& m = model.model->info();
  if (config.context_length_tokens > m.context_length_tokens) {
    return invalid_argument("context_length {} exceeds the model's context of {} tokens",
                            config.context_length_tokens, m.context_length_tokens);
  }
  StateClasses classes = TRY(classify_states(model.states, config.page_size_tokens));
  EngineInfo info;
  static_cast<ModelInfo&>(info) = m;
  static_cast<WeightCounts&>(info) = model.counts;
  if (config.context_length_tokens > 0) info.context_length_tokens = config.context_length_tokens;
  info.kernels = kernels.name;
  info.threads = threads;
  info.page_size_tokens = config.page_size_tokens;
  info.weights = summarise_weights(model.matrices);
  for (const StateSpec& state : model.states) {
    if (state.unit != StateUnit::kPage || !info.state_format.empty()) continue;
    describe_pages(state.dtype, info);
  }
  int64_t alignment = classes.resume_alignment_tokens;
  info.prefill_rows_max = divide_up(config.prefill_tokens(), alignment) * alignment;
  if (info.prefill_rows_max != config.prefill_tokens() && model.rank.index == 0) {
    spdlog::info("chunked_prefill_tokens {} is rounded to {}, a multiple of {}",
                 config.prefill_tokens(), info.prefill_rows_max, alignment);
  }
  auto adapters = adapter_room(config, model, kernels);
  if (adapters != nullptr) {
    info.adapters_max = config.adapters_max;
    info.adapter_rank_max = config.adapter_rank_max;
    info.adapter_bytes = adapters->bytes();
    if (info.adapter_bytes > available_bytes) {
      return exhausted(
          "{} adapters of rank {} take {} of memory, {} are left after the weights; reserve less "
          "(--max-loaded-loras, --max-lora-rank)",
          info.adapters_max, info.adapter_rank_max, format_bytes(info.adapter_bytes),
          format_bytes(available_bytes));
    }
  }
  info.step_bytes = static_cast<int64_t>(measure_step_bytes(
      model, kernels, step_rows_max(config, info), {}, adapters ? &adapters->table() : nullptr));
  auto share =
      static_cast<int64_t>(config.memory_fraction * (available_bytes - info.adapter_bytes));
  PoolPlan pools(config, classes, model.states, info);
  pools.choose(share - info.step_bytes);
  pools.report(info, model.states);
  return info;
}

}  // namespace banyan
