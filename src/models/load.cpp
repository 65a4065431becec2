#include "models/load.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/quote.h"
#include "models/config/keys.h"
#include "weights/block_hashes.h"
#include "weights/convert.h"
#include "weights/files/checkpoint.h"
#include "weights/files/config_file.h"
#include "weights/files/gguf.h"

namespace banyan {
namespace {

// What the checkpoint says its weights are: the config's dtype, else that of the first tensor that
// is floating point, else bf16.
Result<DType> stored_dtype(const ConfigFile& config, const WeightSource* source) {
  std::string key = config.has("dtype") ? "dtype" : "torch_dtype";
  if (std::optional<std::string> name = config.maybe_text(key)) {
    if (*name == "bfloat16") return DType::kBF16;
    if (*name == "float16") return DType::kF16;
    if (*name == "float32") return DType::kF32;
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

void warn_unknown(const ConfigFile& config, std::string_view architecture) {
  for (const std::string& key : unknown_keys(config)) {
    spdlog::warn("config.json: {} is not known to {} and has no effect", quote(key),
                 quote(architecture));
  }
}

// Declares the family's weights; `dry` only checks and counts them.
Result<LoadedModel> build(const Family& family, const ConfigFile& config,
                          const WeightSource* source, const QuantConfig& quant,
                          const QuantizationPlan& plan, const ModelOptions& options, bool dry) {
  const WeightFormat* format = format_named(options.dtype);  // null for auto
  DType dtype = format ? format->element : TRY(stored_dtype(config, source));
  WeightLoader loader({.source = source,
                       .kernels = options.kernels,
                       .queue = options.queue,
                       .threads = options.threads,
                       .format = format,
                       .dtype = dtype,
                       .quant = quant,
                       .plan = &plan,
                       .expanded_prefill = options.mla_prefill == "expanded",
                       .rank = options.rank,
                       .dry = dry,
                       .progress = options.progress});
  LoadedModel loaded;
  loaded.model = TRY(family.load(config, Builder(loader)));
  refuse_variants(config);
  TRY(config.finish());
  TRY(loader.finish());
  loaded.weights = loader.take_store();
  loaded.states = loader.take_states();
  loaded.counts = loader.counts();
  loaded.matrices = loader.take_matrices();
  loaded.expert_layers = loader.take_expert_layers();
  loaded.rank = options.rank;
  return loaded;
}

// `loaded` with what identifies it.
Result<LoadedModel> identified(LoadedModel loaded, const ConfigFile& config,
                               const WeightSource* source, const ModelOptions& options) {
  loaded.config_values = config.values();
  if (!options.digest || source == nullptr) return loaded;
  loaded.weights_digest =
      TRY(weights_digest(*source, user_cache_folder(), *options.threads, options.progress));
  return loaded;
}

// Of states in pages, latents alone have a second form.
bool is_expanded(const StateSpec& state) {
  return state.unit == StateUnit::kPage && state.two_forms;
}

}  // namespace

Result<LoadedModel> load_model(const ModelOptions& options) {
  ConfigFile config = TRY(ConfigFile::load(options.folder));
  std::string architecture = TRY(config.architecture());
  const Family* family = TRY(find_family(architecture, options.families));

  std::optional<Checkpoint> checkpoint;
  std::optional<GgufFile> gguf;
  const WeightSource* source = nullptr;
  if (options.load_format != "dummy" && options.gguf.empty()) {
    source = &checkpoint.emplace(TRY(Checkpoint::open(options.folder)));
  } else if (options.load_format != "dummy") {
    source = &gguf.emplace(TRY(GgufFile::open(options.gguf)));
  }

  // Whatever is wrong is found before the first of perhaps many gigabytes is read.
  QuantConfig quant = TRY(read_quant_config(config));
  QuantizationPlan plan =
      TRY(QuantizationPlan::create(options.quantization, options.quantization_overrides));
  LoadedModel planned = TRY(build(*family, config, source, quant, plan, options, true));
  TRY(plan.check_overrides_matched());
  if (options.mla_prefill == "expanded" && std::ranges::none_of(planned.states, is_expanded)) {
    return unsupported(
        "mla_prefill is \"expanded\", but {} has no latent attention (MLA) to expand; leave it at "
        "\"absorbed\"",
        quote(architecture));
  }
  warn_unknown(config, architecture);
  if (options.dry) return identified(std::move(planned), config, source, options);
  int64_t available = options.queue->available_bytes();
  if (planned.counts.bytes > available) {
    return exhausted("{}: the weights take {} bytes, {} are available", options.folder,
                     planned.counts.bytes, available);
  }
  LoadedModel loaded = TRY(build(*family, config, source, quant, plan, options, false));
  options.queue->synchronise();
  return identified(std::move(loaded), config, source, options);
}

}  // namespace banyan
