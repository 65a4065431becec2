#include "weights/files/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "base/json_text.h"
#include "base/quote.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Keys that only llama.cpp needs, or that repeat what the tensors say.
constexpr std::array<std::string_view, 4> kWithoutEffect = {
    "vocab_size", "rope.scaling.finetuned", "tensor_data_layout",
    "expert_gating_func",  // for families with a fixed function; others read it
};

// Llama 3's rotation. Llama 4's has a high factor of 1, and no frequencies between.
struct Llama3Rotation {
  double factor, high, original;

  // 1 for short wavelengths, `factor` for long ones.
  float divisor(double wavelength) const {
    constexpr double kLow = 1;
    if (wavelength < original / high) return 1;
    if (wavelength > original / kLow || high == kLow) return factor;
    double smooth = (original / wavelength - kLow) / (high - kLow);
    return 1 / ((1 - smooth) / factor + smooth);
  }

  bool gives(std::span<const float> divisors, double theta) const {
    constexpr double kRoundingMax = 1e-4;  // since the converter computes frequencies in f32
    for (size_t i = 0; i < divisors.size(); ++i) {
      double exponent = static_cast<double>(i) / divisors.size();
      double wavelength = 2 * std::numbers::pi * std::pow(theta, exponent);
      float expected = divisor(wavelength);
      if (!(std::abs(divisors[i] - expected) <= kRoundingMax * expected)) return false;
    }
    return true;
  }
};

// The rope_scaling that `divisors` were computed from; null if there is none.
Json llama3_rotation(std::span<const float> divisors, double theta) {
  double factor = *std::ranges::max_element(divisors);
  for (double high : {4.0, 1.0}) {
    for (double original = 16; original <= 1 << 24; original *= 2) {
      if (!Llama3Rotation{factor, high, original}.gives(divisors, theta)) continue;
      return {{"rope_type", "llama3"},
              {"factor", factor},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", high},
              {"original_max_position_embeddings", static_cast<int64_t>(original)}};
    }
  }
  return {};
}

}  // namespace

Result<ConfigFile> gguf_config(const GgufFile& file) {
  Json json = TRY(GgufConfig(file).make());
  return ConfigFile::parse(dump_json(json), file.pairs().path());
}

GgufConfig::GgufConfig(const GgufFile& file)
    : file_(file), prefix_(std::string(file.architecture().name) + ".") {}

Result<Json> GgufConfig::make() {
  const GgufArchitecture& a = file_.architecture();
  bool sparse = integer("expert_count", 0) > 0;
  expect(!sparse || !a.sparse_family.empty(),
         "{}: {}expert_count is {}, and {} with experts is not supported", file_.pairs().path(),
         prefix_, integer("expert_count", 0), a.name);
  set("architectures", Json::array({sparse ? a.sparse_family : a.family}));
  set("torch_dtype", stored_dtype());
  set("tie_word_embeddings", !stores("lm_head.weight"));
  read_sizes();
  read_biases();
  if (!a.mixed_layers) read_rope();
  bool expert_keys = sparse || a.sparse_family.empty();
  for (const GgufKey& key : a.keys) {
    if (expert_keys || !key.theirs.starts_with("expert_")) copy(key.theirs, key.ours);
  }
  if (!error_ && a.rest != nullptr) a.rest(*this);
  keep_unread();
  if (error_) return std::unexpected(*error_);
  return std::move(json_);
}

template <class T>
std::optional<T> GgufConfig::take(Result<T> result) {
  if (result) return *std::move(result);
  fail(result.error());
  return std::nullopt;
}

void GgufConfig::fail(const Error& error) {
  if (!error_) error_ = error;
}

bool GgufConfig::has(std::string_view key) {
  ignore(key);
  return file_.pairs().has(prefix_ + std::string(key));
}

int64_t GgufConfig::integer(std::string_view key, int64_t fallback) {
  ignore(key);
  auto value = take(file_.pairs().integer(prefix_ + std::string(key)));
  return bounded(key, value ? value->value_or(fallback) : fallback);
}

double GgufConfig::number(std::string_view key, double fallback) {
  ignore(key);
  auto value = take(file_.pairs().number(prefix_ + std::string(key)));
  return value ? value->value_or(fallback) : fallback;
}

bool GgufConfig::flag(std::string_view key, bool fallback) {
  ignore(key);
  auto value = take(file_.pairs().flag(prefix_ + std::string(key)));
  return value ? value->value_or(fallback) : fallback;
}

std::vector<int64_t> GgufConfig::integers(std::string_view key) {
  ignore(key);
  auto values =
      take(file_.pairs().integers(prefix_ + std::string(key))).value_or(std::vector<int64_t>());
  for (int64_t& value : values) value = bounded(key, value);
  return values;
}

// So that sums and products of two values do not overflow; 2^31 - 1 is some files' "no limit".
int64_t GgufConfig::bounded(std::string_view key, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (value >= -kMost && value <= kMost) return value;
  fail(corrupt("{}: {}{} is {}; the limit is {}", file_.pairs().path(), prefix_, key, value, kMost)
           .error());
  return 1;
}

std::vector<double> GgufConfig::numbers(std::string_view key) {
  ignore(key);
  return take(file_.pairs().numbers(prefix_ + std::string(key))).value_or(std::vector<double>());
}

int64_t GgufConfig::required(std::string_view key) {
  int64_t value = of_all_layers(key);
  if (value > 0) return value;
  fail(corrupt("{}: {}{} is {}", file_.pairs().path(), prefix_, key,
               has(key) ? std::to_string(value) : "missing")
           .error());
  return 1;
}

int64_t GgufConfig::of_all_layers(std::string_view key) {
  std::vector<int64_t> values = integers(key);
  auto other = std::ranges::adjacent_find(values, std::not_equal_to());
  expect(other == values.end(), "{}: {}{} differs between layers, which is not supported",
         file_.pairs().path(), prefix_, key);
  return values.empty() ? 0 : values.front();
}

void GgufConfig::copy(std::string_view theirs, std::string_view ours) {
  ignore(theirs);
  auto value = take(file_.pairs().value(prefix_ + std::string(theirs)));
  if (value && !value->is_null()) set(ours, *std::move(value));
}

void GgufConfig::read_sizes() {
  std::string embedding = gguf_tensor_name(file_.architecture(), "token_embd.weight");
  if (const TensorInfo* table = file_.find(embedding)) {
    set("vocab_size", table->shape[0]);
  }
  constexpr int64_t kLayersMax = 1 << 16;
  int64_t all = required("block_count"), prediction = integer("nextn_predict_layers", 0);
  expect(all <= kLayersMax && prediction >= 0 && prediction < all,
         "{}: {} layers, {} of them for prediction, which is not supported", file_.pairs().path(),
         all, prediction);
  layers_ = std::clamp<int64_t>(all - std::clamp<int64_t>(prediction, 0, all), 1, kLayersMax);
  hidden_ = required("embedding_length");
  heads_ = required("attention.head_count");
  set("num_hidden_layers", layers_);
  set("hidden_size", hidden_);
  set("num_attention_heads", heads_);
  const GgufArchitecture& a = file_.architecture();
  if (!a.latent && !a.mixed_layers) read_heads();
  set("max_position_embeddings", required("context_length"));
  if (!a.single_blocks && !a.mixed_layers) {
    int64_t inner = of_all_layers("feed_forward_length");
    if (inner > 0) set("intermediate_size", inner);
  }
  constexpr std::string_view kEps = "attention.layer_norm_rms_epsilon";
  constexpr std::string_view kOtherEps = "attention.layer_norm_epsilon";
  bool stated = has(kEps), other = has(kOtherEps);
  expect(stated || other, "{}: {}{} is missing", file_.pairs().path(), prefix_, kEps);
  copy(stated ? kEps : kOtherEps, file_.architecture().eps_key);
}

void GgufConfig::read_heads() {
  head_dim_ = integer("attention.key_length", hidden_ / heads_);
  int64_t value_dim = integer("attention.value_length", head_dim_);
  expect(value_dim == head_dim_ && head_dim_ > 0,
         "{}: {}attention.value_length is {} and key_length {}, which is not supported",
         file_.pairs().path(), prefix_, value_dim, head_dim_);
  set("head_dim", head_dim_);
  constexpr std::string_view kKey = "attention.head_count_kv";
  std::vector<int64_t> counts = integers(kKey);
  int64_t most = counts.empty() ? heads_ : std::ranges::max(counts);
  if (std::ssize(counts) > layers_) counts.resize(as_size(layers_));  // prediction
  set("num_key_value_heads", most);
  bool recurs = std::ranges::count(counts, 0) > 0;
  expect(!recurs || (!file_.architecture().recurrence.empty() && std::ssize(counts) == layers_),
         "{}: {}{} is 0 in some of {} layers, which is not supported", file_.pairs().path(),
         prefix_, kKey, layers_);
  Json types = Json::array();
  for (int64_t count : counts) {
    expect(count == 0 || count == most, "{}: {}{} differs between layers, which is not supported",
           file_.pairs().path(), prefix_, kKey);
    types.push_back(count == 0 ? file_.architecture().recurrence : "full_attention");
  }
  if (recurs) set("layer_types", types);
}

void GgufConfig::read_biases() {
  auto has_bias = [&](std::string_view module) {
    return stores(fmt::format("model.layers.0.{}.bias", module));
  };
  std::string_view key = file_.architecture().bias_key;
  if (!key.empty()) set(key, has_bias("self_attn.q_proj"));
  if (key == "attention_bias" && has_bias("mlp.down_proj")) set("mlp_bias", true);
}

void GgufConfig::read_rope() {
  double theta = number("rope.freq_base", 10000);
  set("rope_theta", theta);
  int64_t rotary = integer("rope.dimension_count", head_dim_);
  if (rotary != head_dim_ && !file_.architecture().latent) {
    set("partial_rotary_factor", static_cast<double>(rotary) / head_dim_);
  }
  double factor = number("rope.scaling.factor", number("rope.scale_linear", 1));
  ignore("rope.scaling.type");
  auto stated = take(file_.pairs().text(prefix_ + "rope.scaling.type"));
  std::string type(stated ? stated->value_or(factor == 1 ? "none" : "linear") : "none");
  if (file_.has_long_rope()) type = "longrope";
  Json rope = {{"rope_type", type}, {"factor", factor}};
  if (type == "yarn") read_yarn(rope);
  if (type != "none" && !(type == "linear" && factor == 1)) set("rope_scaling", rope);
  if (file_.rope_factors().empty()) return;
  Json llama3 = llama3_rotation(file_.rope_factors(), theta);
  expect(type == "none" && !llama3.is_null(),
         "{}: rope_freqs.weight is not Llama 3's rotation, which alone is supported",
         file_.pairs().path());
  if (llama3["factor"] != 1.0) set("rope_scaling", llama3);
}

// The converter of DeepSeek's layers stores a tenth of mscale.
void GgufConfig::read_yarn(Json& rope) {
  struct Factor {
    std::string_view theirs, ours;
  };
  constexpr std::array kFactors = {
      Factor{"yarn_beta_fast", "beta_fast"}, Factor{"yarn_beta_slow", "beta_slow"},
      Factor{"yarn_attn_factor", "attention_factor"}, Factor{"attn_factor", "attention_factor"}};
  for (const Factor& f : kFactors) {
    std::string key = fmt::format("rope.scaling.{}", f.theirs);
    if (has(key)) rope[std::string(f.ours)] = number(key, 1);
  }
  double extrapolation = number("rope.scaling.yarn_ext_factor", 1);
  expect(extrapolation == 1 || extrapolation < 0,
         "{}: {}rope.scaling.yarn_ext_factor is {}; supported: 1", file_.pairs().path(), prefix_,
         extrapolation);
  rope["original_max_position_embeddings"] =
      integer("rope.scaling.original_context_length", required("context_length"));
  if (double log = number("rope.scaling.yarn_log_multiplier", 0); log != 0) {
    constexpr auto kTenths =
        std::to_array<std::string_view>({"deepseek2.", "deepseek32.", "glm-dsa.", "mistral4."});
    double scale = std::ranges::count(kTenths, prefix_) > 0 ? 10 * log : log;
    rope["mscale"] = rope["mscale_all_dim"] = scale;
  }
  if (has("attention.temperature_scale")) {
    rope["llama_4_scaling_beta"] = number("attention.temperature_scale", 0);
  }
  if (prefix_ == "gpt-oss.") rope["truncate"] = false;  // specific to gpt-oss, and not in the file
}

void GgufConfig::set_window() {
  int64_t window = integer("attention.sliding_window", 0);
  set("sliding_window", window > 0 ? Json(window) : Json());
  std::vector<int64_t> sliding = integers("attention.sliding_window_pattern");
  if (window <= 0 || sliding.empty()) return;
  if (sliding.size() == 1) return set("sliding_window_pattern", sliding[0]);
  expect(std::ssize(sliding) >= layers_,
         "{}: {}attention.sliding_window_pattern has {} entries for {} layers",
         file_.pairs().path(), prefix_, sliding.size(), layers_);
  sliding.resize(as_size(layers_), 0);
  Json types = Json::array();
  for (int64_t slides : sliding) {
    types.push_back(slides != 0 ? "sliding_attention" : "full_attention");
  }
  set("layer_types", types);
}

void GgufConfig::expect_gating(int64_t number, std::string_view name) {
  int64_t function = integer("expert_gating_func", number);
  expect(function == number, "{}: {}expert_gating_func is {}; supported: {} ({})",
         file_.pairs().path(), prefix_, function, number, name);
}

// Unread keys keep their own names, so that the loader warns of unknown ones.
void GgufConfig::keep_unread() {
  for (std::string_view without : kWithoutEffect) ignore(without);
  for (std::string_view key : file_.pairs().keys()) {
    if (!key.starts_with(prefix_) || used_.contains(key)) continue;
    auto value = file_.pairs().value(key);
    set(key, value ? *value : Json("a list"));
  }
}

// The storage type of most matrix elements. Block formats without an exact equivalent are rounded
// to bf16.
std::string GgufConfig::stored_dtype() const {
  std::map<std::string_view, size_t> bytes;
  for (const TensorInfo* tensor : file_.tensors()) {
    if (tensor->shape.size() < 2) continue;
    bool f16 = tensor->dtype == DType::kF16, f32 = tensor->dtype == DType::kF32;
    bytes[f16 ? "float16" : f32 ? "float32" : "bfloat16"] += tensor->bytes.size();
  }
  auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) { return entry.second; });
  return std::string(most == bytes.end() ? "bfloat16" : most->first);
}

}  // namespace banyan
