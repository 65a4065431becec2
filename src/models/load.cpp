#include "models/load.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/gguf.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/units.h"
#include "models/config/keys.h"
#include "models/eagle3.h"
#include "tensor/float_names.h"
#include "weights/bare_source.h"
#include "weights/block_hashes.h"
#include "weights/convert.h"
#include "weights/files/checkpoint.h"
#include "weights/files/config_file.h"
#include "weights/files/gguf.h"
#include "weights/files/gguf_config.h"
#include "weights/files/model_folder.h"

namespace banyan {
namespace {

// The dtype of the unquantised weights: from config.json, else that of the first floating-point
// tensor, else bf16.
Result<DType> stored_dtype(const ConfigFile& config, const WeightSource* source) {
  std::string key = config.has("dtype") ? "dtype" : "torch_dtype";
  if (std::optional<std::string> name = config.maybe_text(key)) {
    if (std::optional<DType> dtype = float_dtype(*name)) return *dtype;
    return unsupported("config.json: {} = \"{}\"; supported: bfloat16, float16, float32", key,
                       *name);
  }
  if (source != nullptr) {
    for (const TensorInfo* tensor : source->tensors()) {
      if (is_float_dtype(tensor->dtype)) return tensor->dtype;
    }
  }
  return DType::kBF16;
}

// The part of config.json with the quantisation settings. Multimodal checkpoints may have them
// inside text_config.
ConfigFile quantised_part(const ConfigFile& config) {
  constexpr const char* kPart = "text_config";
  if (config.has("quantization_config") || !config.is_object(kPart)) return config;
  return config.object(kPart);
}

void warn_unknown(const ConfigFile& config, std::string_view architecture) {
  for (const std::string& key : unknown_keys(config)) {
    spdlog::warn("config.json: key {} is unknown to {} and has no effect", quote(key),
                 quote(architecture));
  }
}

// The inputs of one load.
struct Load {
  const EngineConfig& config;
  const LoadContext& context;
  const ConfigFile& file;
  const WeightSource* source;  // null: random weights
  bool headless = false;       // it has no output head
};

// KV cache dtype by option name; nullopt: the dtype of the weights.
std::optional<DType> page_dtype(const std::string& name) {
  if (name == "int8") return DType::kI8;
  if (name == "fp8_e4m3" || name == "fp8") return DType::kF8E4M3;
  return float_dtype(name);
}

// Rejects kv_cache_dtype for models that have no KV cache.
Status check_pages(const EngineConfig& config, std::string_view architecture,
                   std::span<const StateSpec> states) {
  std::optional<DType> dtype = page_dtype(config.kv_cache_dtype);
  auto is_kept = [&](const StateSpec& state) {
    return state.unit == StateUnit::kPage && state.dtype == *dtype;
  };
  if (!dtype || std::ranges::any_of(states, is_kept)) return {};
  return unsupported(
      "kv_cache_dtype is {}, but {} has no attention layers with a KV cache; leave out "
      "--kv-cache-dtype",
      quote(config.kv_cache_dtype), quote(architecture));
}

bool drafts_by(const EngineConfig& config, std::string_view drafter) {
  return std::ranges::find(config.drafters, drafter) != config.drafters.end();
}

// How weights are quantised while they load. The name of a checkpoint's own method asks for
// nothing.
Result<std::string> quantization_at_load(const EngineConfig& config, const QuantConfig& quant) {
  std::optional<std::string_view> stored = stored_method(config.quantization);
  if (!stored) return config.quantization;
  if (quant.name == *stored) return "none";
  return invalid_argument("quantization is {}, but config.json has {}; leave out --quantization",
                          quote(config.quantization),
                          quant.name == "none" ? "no quantization_config" : quote(quant.name));
}

// Declares the family's weights. `dry` only checks and counts them.
Result<LoadedModel> build(const Load& load, const Family& family, const QuantConfig& quant,
                          const QuantizationPlan& plan, bool dry) {
  const auto& [config, context, file, source, headless] = load;
  std::optional<DType> asked = float_dtype(config.dtype);  // not auto
  const WeightFormat* format = asked ? format_of(*asked) : nullptr;
  DType dtype = asked ? *asked : TRY(stored_dtype(file, source));
  LoadOptions options{.source = source,
                      .kernels = context.kernels,
                      .queue = context.queue,
                      .threads = context.threads,
                      .format = format,
                      .dtype = dtype,
                      .page_dtype = page_dtype(config.kv_cache_dtype),
                      .index_dtype = page_dtype(config.index_dtype),
                      .quant = quant,
                      .plan = &plan,
                      .expanded_prefill = config.mla_prefill == "expanded",
                      .prediction = drafts_by(config, "mtp"),
                      .draft_vocabulary = config.draft_vocabulary,
                      .moba_block_tokens = config.moba_block_tokens,
                      .moba_top_k = config.moba_top_k,
                      .moba_decode = config.moba_decode,
                      .headless = headless,
                      .rank = context.rank,
                      .dry = dry,
                      .progress = context.progress};
  WeightLoader loader(options);
  LoadedModel loaded;
  loaded.model = TRY(family.load(file, Builder(loader)));
  if (headless) loaded.model->set_headless();
  refuse_variants(file);
  TRY(file.finish());
  TRY(loader.finish());
  loaded.weights = loader.take_store();
  loaded.states = loader.take_states();
  for (StateSpec& state : loaded.states) {
    if (state.draft_log) state.heads = std::min(config.draft_tokens_max, kDraftLogRowsMax);
  }
  loaded.counts = loader.counts();
  loaded.matrices = loader.take_matrices();
  loaded.expert_layers = loader.take_expert_layers();
  loaded.adapter_sites = loader.take_adapter_sites();
  loaded.dtype = dtype;
  loaded.rank = context.rank;
  loaded.config_values = file.values();
  if (drafts_by(config, "eagle3")) TRY(add_eagle3(config, options, loaded));
  return loaded;
}

// Adds the digests that identify `loaded`.
Result<LoadedModel> identified(const Load& load, LoadedModel loaded) {
  const auto& [config, context, file, source, headless] = load;
  if (!config.state_digest || source == nullptr) return loaded;
  auto digest_of = [&](const WeightSource& weights) {
    return weights_digest(weights, user_cache_folder(), *context.threads, context.progress);
  };
  loaded.weights_digest = TRY(digest_of(*source));
  if (!drafts_by(config, "eagle3")) return loaded;
  Checkpoint head = TRY(Checkpoint::open(config.draft_model_path));
  Hasher both;
  both.digest(*loaded.weights_digest).digest(TRY(digest_of(head)));
  loaded.weights_digest = both.finish();
  return loaded;
}

// Rejects weight-only mode if no weight is stored as integers, since it would have no effect.
Status check_weight_only(std::span<const MatrixRecord> matrices) {
  std::vector<std::string_view> stored;
  for (const MatrixRecord& record : matrices) {
    for (const MatrixRecord::Part& part : record.parts) {
      if (!part.weight_only) continue;
      if (part.integers) return {};
      if (std::ranges::find(stored, part.stored) == stored.end()) stored.push_back(part.stored);
    }
  }
  if (stored.empty()) return {};
  return invalid_argument(
      "quantization weight-only has no effect here: it applies to weights stored as integers or "
      "mxfp4, and these are stored as {}, whose products keep activations unrounded; leave it out, "
      "or name a format to quantise to",
      fmt::join(stored, " and "));
}

// Expanded MLA, or MoBA whose generated tokens attend to all keys.
bool has_two_forms(const StateSpec& state) {
  return state.unit == StateUnit::kPage && state.two_forms;
}

// Models with an index that keeps a key for every token.
bool is_index_key(const StateSpec& state) {
  return state.name.ends_with("index_keys");
}

// Among models with such a state, layers select blocks of keys (MoBA).
bool sums_keys(const StateSpec& state) {
  return state.name.ends_with("key_sums");
}

// MoBA's options apply to layers that select blocks of keys, or could.
Status check_moba(const EngineConfig& config, const std::string& architecture,
                  std::span<const StateSpec> states) {
  if (std::ranges::any_of(states, sums_keys)) return {};
  if (config.moba_block_tokens > 0 || config.moba_top_k > 0) {
    return unsupported(
        "moba_block_tokens is {} and moba_top_k {}, but {} has no grouped-query attention to all "
        "positions that could select blocks; leave out --moba-block-size and --moba-topk",
        config.moba_block_tokens, config.moba_top_k, quote(architecture));
  }
  if (config.moba_decode) {
    return unsupported(
        "moba_decode is {}, but {} selects no blocks of keys; leave out --moba-decode, or give "
        "--moba-block-size and --moba-topk for an experiment",
        *config.moba_decode, quote(architecture));
  }
  return {};
}

// Lines for the log: what differs from the model as it was trained, or surprises.
std::vector<std::string> notes_on_moba(const EngineConfig& config,
                                       std::span<const StateSpec> states) {
  std::vector<std::string> notes;
  if (config.moba_block_tokens > 0 || config.moba_top_k > 0) {
    notes.push_back(fmt::format(
        "experiment: attention selects blocks of keys as options say, not as {} was trained",
        config.model_path));
  }
  bool dense = std::ranges::any_of(states, sums_keys) && std::ranges::any_of(states, has_two_forms);
  if (dense && !config.moba_decode) {
    notes.push_back(fmt::format(
        "MoBA selects blocks only in prompts: use_moba_decode is off in the config of {}, so "
        "generated tokens attend to all keys and are computed again when a later prompt has them; "
        "--moba-decode selects blocks there, too",
        config.model_path));
  }
  return notes;
}

}  // namespace

Status check_weights_fit(const EngineConfig& config, int64_t weight_bytes,
                         int64_t available_bytes) {
  if (weight_bytes <= available_bytes) return {};
  std::string_view way_out = config.quantization == "none" ? "try --quantization int4, or int8"
                                                           : "a smaller model or format may fit";
  return exhausted("{}: the weights take {} of memory, {} are available; {}", config.model_path,
                   format_bytes(weight_bytes), format_bytes(available_bytes), way_out);
}

Result<LoadedModel> load_model(const EngineConfig& config, const LoadContext& context) {
  TRY(check_model_path(config.model_path));
  std::optional<Checkpoint> checkpoint;
  std::optional<GgufFile> gguf, weights;
  if (is_gguf_file(config.model_path)) gguf = TRY(GgufFile::open(config.model_path));
  ConfigFile file = gguf ? TRY(gguf_config(*gguf)) : TRY(ConfigFile::load(config.model_path));
  std::string architecture = TRY(file.architecture());
  const Family* family = TRY(find_family(architecture, context.families));

  const WeightSource* source = gguf ? &*gguf : nullptr;
  if (config.load_format == "dummy") {
    source = nullptr;
  } else if (!config.gguf_path.empty()) {
    source = &weights.emplace(TRY(GgufFile::open(config.gguf_path)));
  } else if (!gguf) {
    source = &checkpoint.emplace(TRY(Checkpoint::open(config.model_path)));
  }

  std::optional<BareSource> bare;
  if (source != nullptr && BareSource::fits(*source)) source = &bare.emplace(*source);
  bool headless =
      bare && !file.holds("tie_word_embeddings", {true}) && bare->find("lm_head.weight") == nullptr;
  Load load{config, context, file, source, headless};
  // A dry run first: report any error before reading what may be hundreds of gigabytes.
  QuantConfig quant = TRY(read_quant_config(quantised_part(file)));
  QuantizationPlan plan = TRY(QuantizationPlan::create(TRY(quantization_at_load(config, quant)),
                                                       config.quantization_overrides));
  LoadedModel planned = TRY(build(load, *family, quant, plan, true));
  TRY(plan.check_overrides_matched());
  TRY(check_weight_only(planned.matrices));
  TRY(check_pages(config, architecture, planned.states));
  TRY(check_moba(config, architecture, planned.states));
  if (config.index_dtype != "auto" && std::ranges::none_of(planned.states, is_index_key)) {
    return unsupported(
        "index_dtype is {}, but {} has no index that chooses which tokens it attends to; leave out "
        "--index-dtype",
        quote(config.index_dtype), quote(architecture));
  }
  if (config.mla_prefill == "expanded" && (std::ranges::none_of(planned.states, has_two_forms) ||
                                           std::ranges::any_of(planned.states, sums_keys))) {
    return unsupported(
        "mla_prefill is \"expanded\", but {} has no latent attention (MLA); leave it at "
        "\"absorbed\"",
        quote(architecture));
  }
  if (drafts_by(config, "mtp") && !planned.model->predicts()) {
    return unsupported(
        "drafter \"mtp\": {} in {} has no multi-token prediction (MTP) layer; take ngram or "
        "suffix",
        quote(architecture), config.model_path);
  }
  if (!context.quiet) warn_unknown(file, architecture);
  if (context.dry) return identified(load, std::move(planned));
  if (auto notes = notes_on_moba(config, planned.states); !notes.empty()) {
    static std::once_flag said;  // once per process, not once per rank and draft model
    std::call_once(said, [&] {
      for (const std::string& note : notes) spdlog::info("{}", note);
    });
  }
  TRY(check_weights_fit(config, planned.counts.weight_bytes, context.queue->available_bytes()));
  LoadedModel loaded = TRY(build(load, *family, quant, plan, false));
  context.queue->synchronise();
  return identified(load, std::move(loaded));
}

}  // namespace banyan
