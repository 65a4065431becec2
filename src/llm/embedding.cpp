#include "llm/embedding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/gguf.h"
#include "base/json.h"
#include "base/quote.h"
#include "base/signed.h"
#include "weights/files/config_file.h"

namespace banyan {
namespace {

constexpr std::string_view kWayOut = "; --pooling last or mean overrides it";

Result<Pooling> pooling_named(std::string_view name, std::string_view where) {
  constexpr std::array<std::pair<std::string_view, Pooling>, 3> kNames = {
      {{"last", Pooling::kLast}, {"lasttoken", Pooling::kLast}, {"mean", Pooling::kMean}}};
  for (auto [known, pooling] : kNames) {
    if (name == known) return pooling;
  }
  return unsupported(
      "{}: embeddings are pooled as {}, but only the last token and the mean are "
      "supported{}",
      where, quote(name), kWayOut);
}

// llama.cpp's numbers.
Result<std::optional<Pooling>> read_gguf_pooling(const std::string& path) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "mean", "cls", "last", "rank"};
  MappedFile file = TRY(MappedFile::open(path));
  GgufPairs pairs = TRY(GgufPairs::parse(file.bytes(), path));
  std::string_view architecture = TRY(pairs.text("general.architecture")).value_or("");
  std::string key = fmt::format("{}.pooling_type", architecture);
  double type = TRY(pairs.number(key)).value_or(0);
  if (type == 0) return std::nullopt;
  if (type >= 0 && type < kNames.size() && type == std::floor(type)) {
    return pooling_named(kNames[static_cast<size_t>(type)], path);
  }
  return corrupt("{}: {} is {}, not a number from 0 to {}", path, key, type, kNames.size() - 1);
}

// One key names the pooling, or older files have a flag for each kind.
Result<Pooling> read_pooling_module(const std::string& path) {
  constexpr std::string_view kPrefix = "pooling_mode_", kSuffix = "_tokens";
  ConfigFile file = TRY(ConfigFile::parse(TRY(read_file(path, JsonLimits{}.bytes_max)), path));
  std::vector<std::string> kinds;
  if (std::optional<std::string> kind = file.maybe_text("pooling_mode")) kinds.push_back(*kind);
  for (const std::string& key : file.keys()) {
    if (!key.starts_with(kPrefix) || !file.flag(key)) continue;
    std::string_view kind = std::string_view(key).substr(kPrefix.size());
    if (kind.ends_with(kSuffix)) kind.remove_suffix(kSuffix.size());
    if (kind == "cls_token") kind = "cls";  // as the one key has it
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.emplace_back(kind);
  }
  file.only("include_prompt", {true});  // else a mean leaves out what stands before the text
  TRY(file.finish());
  if (kinds.size() == 1) return pooling_named(kinds[0], path);
  return unsupported("{}: embeddings are pooled in {} ways, but one is supported{}", path,
                     kinds.size(), kWayOut);
}

// A module's class without its package: "Pooling" of "sentence_transformers.models.Pooling".
std::string_view class_of(std::string_view type) {
  return type.substr(type.rfind('.') + 1);
}

// modules.json lists what is done one after the other: the model, a pooling, and perhaps a
// normalisation, which only removes a factor that we remove as well.
Result<std::optional<Pooling>> read_modules(const std::string& folder, const std::string& path) {
  Json modules = TRY(parse_json(TRY(read_file(path, JsonLimits{}.bytes_max)), path));
  if (!modules.is_array()) return corrupt("{}: not a list of modules", path);
  std::optional<Pooling> pooling;
  for (const Json& module : modules) {
    bool whole = module.is_object() && module.contains("type") && module["type"].is_string() &&
                 module.contains("path") && module["path"].is_string();
    if (!whole) return corrupt("{}: a module without a type and a path", path);
    const auto& type = module["type"].get_ref<const std::string&>();
    const auto& place = module["path"].get_ref<const std::string&>();
    std::string_view name = class_of(type);
    if (name == "Transformer" || name == "Normalize") continue;
    if (name != "Pooling") {
      return unsupported("{}: embeddings pass through a module {}, which is not supported{}", path,
                         quote(type), kWayOut);
    }
    if (place.empty() || place.starts_with('.') || place.find('/') != std::string::npos) {
      return corrupt("{}: {} is no folder next to this file", path, quote(place));
    }
    pooling = TRY(read_pooling_module(folder + "/" + place + "/config.json"));
  }
  return pooling;
}

}  // namespace

EmbeddingConfig read_embedding_config(const EngineConfig& config) {
  const std::string& model = config.model_path;
  std::string modules = model + "/modules.json";
  Result<std::optional<Pooling>> said = std::nullopt;
  if (is_gguf_file(model)) {
    said = read_gguf_pooling(model);
  } else if (file_exists(modules)) {
    said = read_modules(model, modules);
  }
  EmbeddingConfig embedding{.intended = config.embedding_model || (said && said->has_value())};
  if (config.pooling != "auto") {
    embedding.pooling = pooling_named(config.pooling, "pooling");
  } else if (!said) {
    embedding.pooling = std::unexpected(said.error());
  } else {
    embedding.pooling = said->value_or(Pooling::kLast);
  }
  return embedding;
}

TextRequest embedding_request(TextRequest text, Pooling pooling) {
  text.options.max_new_tokens = 0;
  text.options.pooling = pooling;
  return text;
}

Status check_dimensions(int64_t dimensions, int64_t hidden) {
  if (dimensions >= 0 && dimensions <= hidden) return {};
  return invalid_argument("dimensions is {}; this model's embeddings have {}", dimensions, hidden);
}

std::vector<float> normalised(std::span<const float> embedding, int64_t dimensions) {
  if (dimensions > 0) embedding = embedding.first(as_size(dimensions));
  double squares = 0;
  for (float value : embedding) squares += static_cast<double>(value) * value;
  double factor = squares > 0 ? 1 / std::sqrt(squares) : 1;
  std::vector<float> unit(embedding.size());
  for (size_t i = 0; i < unit.size(); ++i) unit[i] = static_cast<float>(embedding[i] * factor);
  return unit;
}

}  // namespace banyan
