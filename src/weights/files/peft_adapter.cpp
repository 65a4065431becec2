#include "weights/files/peft_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quote.h"
#include "weights/convert.h"
#include "weights/files/config_file.h"
#include "weights/shape_text.h"

namespace banyan {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kA = ".lora_A.weight", kB = ".lora_B.weight";
constexpr size_t kPatternsMax = 256;

// Settings that add to the computation, or change the base model.
void refuse_variants(const ConfigFile& file) {
  for (const char* key :
       {"use_dora", "lora_bias", "modules_to_save", "fan_in_fan_out", "target_parameters",
        "trainable_token_indices", "layer_replication", "use_qalora", "use_bdlora",
        "alora_invocation_tokens", "alora_invocation_string", "megatron_config", "arrow_config",
        "velora_config", "monteclora_config", "kasa_config"}) {
    file.expect(file.is_off(key), "{} is {}, which is not supported", key, file.shown(key));
    file.ignore({key});
  }
  file.only("bias", {"none"});
  // The others train against changed weights of the base model, which the adapter does not have.
  file.only("init_lora_weights", {true, false, "gaussian", "eva", "orthogonal"});
  file.ignore({"target_modules", "exclude_modules", "layers_to_transform", "layers_pattern",
               "lora_dropout", "base_model_name_or_path", "revision", "auto_mapping",
               "inference_mode", "task_type", "megatron_core", "loftq_config", "eva_config",
               "corda_config", "lora_ga_config", "peft_version", "runtime_config",
               "qalora_group_size", "ensure_weight_tying"});
}

// Why a tensor is not one of an adapter's two.
std::string_view kind_of_other(std::string_view name) {
  if (name.find("lora_magnitude_vector") != name.npos) return "DoRA is not supported";
  if (name.find("lora_embedding_") != name.npos) return "embeddings take no adapter";
  if (name.ends_with(".lora_B.bias")) return "biases of an adapter are not supported";
  return "it is neither a lora_A.weight nor a lora_B.weight of base_model.model, and whole weights "
         "(modules_to_save) are not supported";
}

Status check_rank(const std::string& path, const TensorInfo& tensor, size_t axis, int64_t rank) {
  if (!is_float_dtype(tensor.dtype)) {
    return unsupported("{}: {} has dtype {} where F32, BF16 or F16 is expected", path, tensor.name,
                       dtype_name(tensor.dtype));
  }
  if (tensor.shape.size() == 2 && tensor.shape[axis] == rank) return {};
  return corrupt("{}: {} has shape {}, but the config says that its rank is {}", path, tensor.name,
                 shape_text(tensor.shape), rank);
}

Result<std::vector<PeftModule>> modules_of(const SafetensorsFile& file, const PeftConfig& config) {
  std::map<std::string, PeftModule> modules;
  for (const TensorInfo& tensor : file.tensors()) {
    std::string_view name = tensor.name;
    bool is_a = name.ends_with(kA),
         known = name.starts_with(kPrefix) && (is_a || name.ends_with(kB));
    if (!known || name.size() <= kPrefix.size() + kA.size()) {
      return unsupported("{}: {}: {}", file.path(), tensor.name, kind_of_other(name));
    }
    name.remove_prefix(kPrefix.size());
    name.remove_suffix(kA.size());
    PeftModule& module = modules[std::string(name)];
    (is_a ? module.a : module.b) = &tensor;
  }
  std::vector<PeftModule> all;
  for (auto& [name, module] : modules) {
    if (module.a == nullptr || module.b == nullptr) {
      return corrupt("{}: {}{} has no {}", file.path(), name, module.a == nullptr ? kB : kA,
                     module.a == nullptr ? kA.substr(1) : kB.substr(1));
    }
    module.name = name;
    module.scaling = config.scaling(name);
    TRY(check_rank(file.path(), *module.a, 0, config.rank(name)));
    TRY(check_rank(file.path(), *module.b, 1, config.rank(name)));
    all.push_back(std::move(module));
  }
  if (all.empty()) return corrupt("{}: it has no tensors", file.path());
  return all;
}

}  // namespace

Result<std::vector<PeftConfig::Pattern>> PeftConfig::patterns_of(const ConfigFile& file,
                                                                 const char* key, double min,
                                                                 double max) {
  std::vector<Pattern> patterns;
  if (file.is_off(key)) {
    file.ignore({key});
    return patterns;
  }
  ConfigFile object = file.object(key);
  std::vector<std::string> keys = object.keys();
  object.expect(keys.size() <= kPatternsMax, "{} has {} patterns, the limit is {}", key,
                keys.size(), kPatternsMax);
  TRY(object.finish());
  for (const std::string& regex : keys) {
    auto pattern = NamePattern::compile(fmt::format("^(?:.*\\.)?(?:{})$", regex));
    object.expect(pattern.has_value(), "{}: {}: {}", key, quote(regex),
                  pattern ? "" : pattern.error().message);
    if (pattern) patterns.emplace_back(*std::move(pattern), object.number(regex, min, max));
  }
  TRY(object.finish());
  return patterns;
}

Result<PeftConfig> PeftConfig::parse(std::string_view text, const std::string& path) {
  constexpr double kAlphaMax = 1e6;
  ConfigFile file = TRY(ConfigFile::parse(text, path));
  std::string type = file.text("peft_type");
  file.expect(type == "LORA", "peft_type is {}; supported: LORA", quote(type));
  refuse_variants(file);
  PeftConfig config;
  config.rank_ = file.integer_or("r", 8, 1, kRankMax);
  config.alpha_ = file.number_or("lora_alpha", 8, -kAlphaMax, kAlphaMax);
  config.rank_stabilised_ = file.flag_or("use_rslora", false);
  TRY(file.finish());
  config.ranks_ = TRY(patterns_of(file, "rank_pattern", 1, kRankMax));
  for (const auto& [pattern, rank] : config.ranks_) {
    file.expect(rank == std::floor(rank), "rank_pattern has a rank of {}", rank);
  }
  TRY(file.finish());
  config.alphas_ = TRY(patterns_of(file, "alpha_pattern", -kAlphaMax, kAlphaMax));
  for (const std::string& key : file.unread()) {
    if (!file.is_off(key))
      spdlog::warn("{}: key {} is unknown and has no effect", path, quote(key));
  }
  return config;
}

double PeftConfig::value_of(const std::vector<Pattern>& patterns, const std::string& module,
                            double otherwise) {
  auto found = std::ranges::find_if(
      patterns, [&](const Pattern& pattern) { return pattern.first.matches(module); });
  return found == patterns.end() ? otherwise : found->second;
}

int64_t PeftConfig::rank(const std::string& module) const {
  return static_cast<int64_t>(value_of(ranks_, module, static_cast<double>(rank_)));
}

double PeftConfig::scaling(const std::string& module) const {
  auto divisor = static_cast<double>(rank(module));
  return value_of(alphas_, module, alpha_) / (rank_stabilised_ ? std::sqrt(divisor) : divisor);
}

Result<PeftAdapter> PeftAdapter::open(const std::string& folder) {
  constexpr size_t kConfigBytesMax = 1 << 20;
  if (folder.ends_with(".gguf")) {
    return unsupported("{}: adapters in GGUF files are not supported yet; give a folder of PEFT's",
                       folder);
  }
  std::string path = folder + "/adapter_config.json";
  if (!file_exists(path)) {
    return not_found("{}: no such file; the folder of a PEFT adapter has one", path);
  }
  PeftConfig config = TRY(PeftConfig::parse(TRY(read_file(path, kConfigBytesMax)), path));
  std::string weights = folder + "/adapter_model.safetensors";
  if (!file_exists(weights)) {
    return not_found("{}: no such file; adapters are read from safetensors only", weights);
  }
  SafetensorsFile file = TRY(SafetensorsFile::open(weights));
  auto modules = TRY(modules_of(file, config));
  return PeftAdapter(std::move(file), std::move(modules));
}

int64_t PeftAdapter::rank_max() const {
  int64_t most = 0;
  for (const PeftModule& module : modules_) most = std::max(most, module.rank());
  return most;
}

}  // namespace banyan
