// The validate() of configs and parameters: limits, and errors that name the option.
#include "banyan/config.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>
#include <vector>

#include "banyan/request.h"
#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "tensor/float_names.h"
#include "weights/quant_config.h"

namespace banyan {
namespace {

template <class T>
Status in_range(std::string_view name, T value, T min, T max) {
  if (value >= min && value <= max) return {};  // false for NaN
  return invalid_argument("{} is {}; it must be between {} and {}", name, value, min, max);
}

template <size_t N>
Status one_of(std::string_view name, std::string_view value,
              const std::array<std::string_view, N>& allowed) {
  for (std::string_view candidate : allowed) {
    if (value == candidate) return {};
  }
  return invalid_argument("{} is \"{}\"; supported: {}", name, value, fmt::join(allowed, ", "));
}

// auto, a floating-point type by any of its names, or one of `others`.
Status dtype_or_one_of(std::string_view name, std::string_view value,
                       std::initializer_list<std::string_view> others = {}) {
  if (value == "auto" || float_dtype(value) || std::ranges::find(others, value) != others.end()) {
    return {};
  }
  std::vector<std::string_view> supported = {"auto", "bf16", "f16", "f32"};
  supported.insert(supported.end(), others);
  return invalid_argument("{} is \"{}\"; supported: {}", name, value, fmt::join(supported, ", "));
}

}  // namespace

Status CacheStorageConfig::validate() const {
  TRY(one_of(
      "cache_storage.write_policy", write_policy,
      std::array<std::string_view, 3>{"write_back", "write_through", "write_through_selective"}));
  TRY(one_of("cache_storage.prefetch_policy", prefetch_policy,
             std::array<std::string_view, 3>{"best_effort", "timeout", "wait_complete"}));
  TRY(in_range<int64_t>("cache_storage.prefetch_tokens_min", prefetch_tokens_min, 1,
                        int64_t{1} << 31));
  constexpr double kSecondsMax = 1e6;
  TRY(in_range("cache_storage.prefetch_timeout_s", prefetch_timeout_s, 0.0, kSecondsMax));
  TRY(in_range("cache_storage.prefetch_timeout_per_ki_token_s", prefetch_timeout_per_ki_token_s,
               0.0, kSecondsMax));
  TRY(in_range("cache_storage.flush_s", flush_s, 0.0, kSecondsMax));
  TRY(in_range("cache_storage.snapshot_fraction", snapshot_fraction, 0.0, 0.99));
  TRY(in_range("cache_storage.host_ratio", host_ratio, 0.0, 1e6));
  constexpr int64_t kBytesMax = int64_t{1} << 60;
  TRY(in_range<int64_t>("cache_storage.host_size_bytes", host_size_bytes, 0, kBytesMax));
  TRY(in_range<int64_t>("cache_storage.size_bytes", size_bytes, 0, kBytesMax));
  return in_range<int64_t>("cache_storage.write_budget_bytes_per_day", write_budget_bytes_per_day,
                           0, kBytesMax);
}

Status StepTimes::validate() const {
  constexpr double kSecondsMax = 3600;
  TRY(in_range("step_s", step_s, 0.0, kSecondsMax));
  TRY(in_range("prompt_row_s", prompt_row_s, 0.0, kSecondsMax));
  return in_range("decode_row_s", decode_row_s, 0.0, kSecondsMax);
}

// Options that need real results, which emulated steps do not compute.
static Status check_emulation(const EngineConfig& config) {
  TRY(config.emulated_steps->validate());
  auto refuse = [](std::string_view what) {
    return unsupported("emulated steps compute nothing, so they cannot be used with {}", what);
  };
  if (config.cache_storage.on()) return refuse("stored prefixes");
  if (!config.drafters.empty() || !config.draft_model_path.empty()) return refuse("drafters");
  if (config.expert_counts) return refuse("expert counts");
  if (config.kernels != "auto") return refuse("a choice of kernels");
  if (config.total_tokens_max == 0) {
    return invalid_argument(
        "emulated steps need total_tokens_max, the tokens that the cache of the emulated machine "
        "holds");
  }
  return {};
}

// What only one rank can do.
static Status check_ranks(const EngineConfig& config) {
  auto refuse = [&](std::string_view what) {
    return unsupported("tp_size is {}, but {} on one rank only so far", config.tp_size, what);
  };
  if (config.kernels == "cuda") return refuse("a GPU is used");
  if (config.kernels == "fenced" || config.kernels == "cuda_emulated") {
    return refuse("these kernels run");
  }
  if (config.cache_storage.on()) return refuse("prefixes are stored");
  if (config.emulated_steps) return refuse("steps are emulated");
  return {};
}

static Status check_adapters(const EngineConfig& config) {
  constexpr int kAdaptersMax = 4096, kRankMax = 4096;
  TRY(in_range("adapters_max", config.adapters_max, 0, kAdaptersMax));
  TRY(in_range("adapter_rank_max", config.adapter_rank_max, 0, kRankMax));
  TRY(in_range<size_t>("adapters", config.adapters.size(), 0, kAdaptersMax));
  if (config.adapters_max > 0 && config.adapters.size() > as_size(config.adapters_max)) {
    return invalid_argument("{} adapters are to be loaded, but adapters_max is {}",
                            config.adapters.size(), config.adapters_max);
  }
  std::set<std::string_view> names;
  for (const AdapterSource& adapter : config.adapters) {
    TRY(adapter.validate());
    if (names.insert(adapter.name).second) continue;
    return invalid_argument("adapter {} is given twice", quote(adapter.name));
  }
  auto refuse = [](std::string_view what) {
    return unsupported("adapters are not supported {} yet", what);
  };
  if (config.adapters_max == 0 && config.adapters.empty()) return {};
  if (config.kernels == "cuda") return refuse("on a GPU");
  if (config.tp_size > 1) return refuse("with several ranks (tp_size)");
  if (config.emulated_steps) return refuse("with emulated steps");
  return {};
}

Status AdapterSource::validate() const {
  constexpr size_t kNameBytesMax = 256;
  constexpr double kScaleMax = 1e6;
  if (name.empty() || name.size() > kNameBytesMax) {
    return invalid_argument("an adapter's name has {} bytes; it must have 1 to {}", name.size(),
                            kNameBytesMax);
  }
  if (path.empty()) return invalid_argument("adapter {} has no path", quote(name));
  return in_range("an adapter's scale", scale, -kScaleMax, kScaleMax);
}

int64_t EngineConfig::prefill_tokens() const {
  if (chunked_prefill_tokens > 0) return chunked_prefill_tokens;
  return kernels == "cuda" ? 4096 : 512;
}

Status EngineConfig::validate() const {
  constexpr int64_t kTokensMax = int64_t{1} << 31;
  if (model_path.empty()) return invalid_argument("model_path is empty; give a model folder");
  TRY(dtype_or_one_of("dtype", dtype));
  TRY(one_of("pooling", pooling, std::array<std::string_view, 3>{"auto", "last", "mean"}));
  TRY(one_of("load_format", load_format, std::array<std::string_view, 2>{"auto", "dummy"}));
  std::string_view format = std::string_view(quantization).substr(0, quantization.find(':'));
  if (!stored_method(format)) {
    TRY(one_of(
        "quantization", format,
        std::array<std::string_view, 6>{"none", "weight-only", "int8", "int4", "fp8", "mxfp4"}));
  }
  TRY(one_of("sampling_defaults", sampling_defaults,
             std::array<std::string_view, 2>{"model", "openai"}));
  TRY(one_of("mla_prefill", mla_prefill, std::array<std::string_view, 2>{"absorbed", "expanded"}));
  TRY(in_range<int64_t>("moba_block_tokens", moba_block_tokens, 0, 1 << 20));
  TRY(in_range<int64_t>("moba_top_k", moba_top_k, 0, 1 << 12));
  TRY(dtype_or_one_of("kv_cache_dtype", kv_cache_dtype, {"fp8_e4m3", "fp8", "int8"}));
  TRY(one_of("index_dtype", index_dtype,
             std::array<std::string_view, 4>{"auto", "bf16", "fp8", "fp8_e4m3"}));
  TRY(in_range<size_t>("quantization_overrides", quantization_overrides.size(), 0, 1024));
  TRY(cache_storage.validate());
  TRY(check_adapters(*this));
  if (emulated_steps) TRY(check_emulation(*this));
  TRY(in_range("threads", threads, 0, 1024));
  TRY(in_range("tp_size", tp_size, 1, 1024));
  if (tp_size > 1) TRY(check_ranks(*this));
  TRY(in_range<int64_t>("context_length_tokens", context_length_tokens, 0, kTokensMax));
  TRY(in_range("page_size_tokens", page_size_tokens, 1, 1024));
  if (!std::has_single_bit(static_cast<unsigned>(page_size_tokens))) {
    return invalid_argument("page_size_tokens is {}, not a power of two", page_size_tokens);
  }
  TRY(in_range<int64_t>("total_tokens_max", total_tokens_max, 0, kTokensMax));
  TRY(in_range("memory_fraction", memory_fraction, 0.01, 1.0));
  TRY(in_range("running_max", running_max, 1, 1 << 16));
  TRY(in_range("queued_max", queued_max, 1, 1 << 24));
  TRY(in_range("chunked_prefill_tokens", chunked_prefill_tokens, 0, 1 << 20));
  TRY(in_range("prefill_step_ms", prefill_step_ms, 0.0, 1e6));
  TRY(one_of("schedule_policy", schedule_policy,
             std::array<std::string_view, 3>{"fcfs", "lpm", "priority"}));
  TRY(in_range("aging_period", aging_period, 1, 1 << 20));
  TRY(in_range<int64_t>("snapshot_interval_tokens", snapshot_interval_tokens, 1, kTokensMax));
  TRY(in_range("snapshot_fraction", snapshot_fraction, 0.0, 0.9));
  TRY(in_range("draft_tokens_max", draft_tokens_max, 0, 1024));
  TRY(in_range("draft_tokens_min", draft_tokens_min, 0, 1024));
  TRY(in_range("draft_topk", draft_topk, 1, 8));
  TRY(in_range("scheduler_steps", scheduler_steps, 1, 16));
  TRY(in_range<int64_t>("draft_vocabulary", draft_vocabulary, 0, 1 << 24));
  TRY(in_range<size_t>("drafters", drafters.size(), 0, 5));
  TRY(in_range("ngram_tokens_min", ngram_tokens_min, 2, 32));
  TRY(in_range("ngram_tokens_max", ngram_tokens_max, ngram_tokens_min, 32));
  TRY(in_range<int64_t>("prompt_tokens_max", prompt_tokens_max, 1, kTokensMax));
  TRY(in_range("top_logprobs_max", top_logprobs_max, 0, 1 << 16));
  TRY(in_range("stop_token_ids_max", stop_token_ids_max, 0, 1 << 16));
  TRY(in_range("logit_bias_max", logit_bias_max, 0, 1 << 16));
  TRY(in_range("stop_strings_max", stop_strings_max, 0, 1 << 16));
  return in_range("stop_string_bytes_max", stop_string_bytes_max, 0, 1 << 20);
}

Status SamplingParams::validate() const {
  constexpr int kWindowMax = 1 << 30;
  constexpr float kTemperatureMax = 100, kPenaltyMax = 2, kRepetitionMin = 0.01f,
                  kRepetitionMax = 100, kBiasMax = 100, kDryMultiplierMax = 100, kDryBaseMax = 100;
  TRY(in_range("temperature", temperature, 0.0f, kTemperatureMax));
  if (!(top_p > 0 && top_p <= 1)) {
    return invalid_argument("top_p is {}; it must be greater than 0 and at most 1", top_p);
  }
  TRY(in_range("top_k", top_k, 0, 1 << 30));
  TRY(in_range("min_p", min_p, 0.0f, 1.0f));
  if (!(typical_p > 0 && typical_p <= 1)) {
    return invalid_argument("typical_p is {}; it must be greater than 0 and at most 1", typical_p);
  }
  TRY(in_range("xtc_probability", xtc_probability, 0.0f, 1.0f));
  TRY(in_range("xtc_threshold", xtc_threshold, 0.0f, 1.0f));
  TRY(in_range("frequency_penalty", frequency_penalty, -kPenaltyMax, kPenaltyMax));
  TRY(in_range("presence_penalty", presence_penalty, -kPenaltyMax, kPenaltyMax));
  TRY(in_range("repetition_penalty", repetition_penalty, kRepetitionMin, kRepetitionMax));
  TRY(in_range("repeat_last_n", repeat_last_n, -1, kWindowMax));
  TRY(in_range("dry_multiplier", dry_multiplier, 0.0f, kDryMultiplierMax));
  TRY(in_range("dry_base", dry_base, 1.0f, kDryBaseMax));
  TRY(in_range("dry_allowed_length", dry_allowed_length, 0, kWindowMax));
  TRY(in_range("dry_penalty_last_n", dry_penalty_last_n, -1, kWindowMax));
  for (auto [token, bias] : logit_bias) TRY(in_range("logit_bias", bias, -kBiasMax, kBiasMax));
  return {};
}

const char* to_string(Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return "none";
    case Pooling::kLast:
      return "last";
    case Pooling::kMean:
      return "mean";
  }
  return "unknown";
}

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kTimeout:
      return "timeout";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "unknown";
}

}  // namespace banyan
