#include "models/config/rope.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace banyan {
namespace {

constexpr double kThetaMin = 1.000001, kThetaMax = 1e15;
constexpr double kFactorMin = 1e-3, kFactorMax = 1e6;
constexpr double kOriginalContextMax = 1e9;

// Reads a number; like transformers, treats 0 as missing.
double number_or_if_zero(const ConfigFile& p, std::string_view key, double fallback) {
  double value = p.number_or(key, fallback, 0, kFactorMax);
  return value == 0 ? fallback : value;
}

void read_llama3(const ConfigFile& p, RopeConfig& rope) {
  rope.type = RopeType::kLlama3;
  rope.factor = p.number("factor", kFactorMin, kFactorMax);
  rope.low_frequency_factor = p.number("low_freq_factor", kFactorMin, kFactorMax);
  rope.high_frequency_factor = p.number("high_freq_factor", kFactorMin, kFactorMax);
  p.expect(rope.high_frequency_factor >= rope.low_frequency_factor,
           "rope high_freq_factor {} must not be below low_freq_factor {}",
           rope.high_frequency_factor, rope.low_frequency_factor);
  p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor",
               "original_max_position_embeddings", "factor", "low_freq_factor",
               "high_freq_factor"});
}

void read_yarn(const ConfigFile& p, double context_tokens, RopeConfig& rope) {
  rope.type = RopeType::kYarn;
  rope.factor = p.maybe_number("factor", kFactorMin, kFactorMax)
                    .value_or(context_tokens / rope.original_context_tokens);
  rope.beta_fast = number_or_if_zero(p, "beta_fast", rope.beta_fast);
  rope.beta_slow = number_or_if_zero(p, "beta_slow", rope.beta_slow);
  rope.truncate = p.flag_or("truncate", true);
  double mscale = p.number_or("mscale", 0, 0, kFactorMax);
  double mscale_all = p.number_or("mscale_all_dim", 0, 0, kFactorMax);
  double derived = yarn_attention_factor(rope.factor);
  if (mscale != 0 && mscale_all != 0) {
    derived =
        yarn_attention_factor(rope.factor, mscale) / yarn_attention_factor(rope.factor, mscale_all);
  }
  if (mscale_all != 0) {
    double m = yarn_attention_factor(rope.factor, mscale_all);
    rope.score_factor = m * m;
  }
  rope.attention_factor = p.number_or("attention_factor", derived, 0, kFactorMax);
  rope.query_beta = p.number_or("llama_4_scaling_beta", 0, 0, kFactorMax);
  p.ignore({"finetuned", "max_position_embeddings"});
  p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor",
               "original_max_position_embeddings", "factor", "beta_fast", "beta_slow", "truncate",
               "mscale", "mscale_all_dim", "attention_factor", "finetuned", "mrope_section",
               "mrope_interleaved", "llama_4_scaling_beta", "max_position_embeddings"});
}

// Dynamic NTK scaling only takes effect beyond max_position_embeddings, which we never exceed. With
// `alpha` (Hunyuan) theta is scaled by a constant and the other keys have no effect.
void read_dynamic(const ConfigFile& p, RopeConfig& rope) {
  double alpha = p.number_or("alpha", 0, 0, kFactorMax);
  double dim = rope.rotary_dim;
  if (alpha > 0 && dim > 2) rope.theta *= std::pow(alpha, dim / (dim - 2));
  p.ignore({"factor"});
  if (alpha > 0) {
    p.ignore({"beta_fast", "beta_slow", "mscale", "mscale_all_dim"});
    p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor",
                 "original_max_position_embeddings", "factor", "alpha", "beta_fast", "beta_slow",
                 "mscale", "mscale_all_dim"});
  } else {
    p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor",
                 "original_max_position_embeddings", "factor", "alpha"});
  }
}

constexpr std::string_view kOriginal = "original_max_position_embeddings";

std::string_view rope_key(const ConfigFile& config) {
  return config.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
}

ConfigFile rope_object(const ConfigFile& config) {
  return config.object(rope_key(config));
}

// Reads one set of rope parameters, with `rope` as defaults. Rejects keys that do not belong to the
// rope type, since ignoring them would compute the wrong rotation.
RopeConfig read_parameters(const ConfigFile& p, int64_t context_tokens, bool outer_original,
                           RopeConfig rope) {
  rope.theta = p.number_or("rope_theta", rope.theta, kThetaMin, kThetaMax);
  double original = p.number_or(kOriginal, rope.original_context_tokens, 1, kOriginalContextMax);
  if (!outer_original) rope.original_context_tokens = original;
  std::string old_name = p.text_or("type", "default");
  std::string type = p.text_or("rope_type", old_name);
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = p.number("factor", kFactorMin, kFactorMax);
    p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor", kOriginal, "factor"});
  } else if (type == "llama3") {
    read_llama3(p, rope);
  } else if (type == "yarn") {
    read_yarn(p, context_tokens, rope);
  } else if (type == "dynamic") {
    read_dynamic(p, rope);
  } else if (type == "proportional") {
    rope.type = RopeType::kProportional;
    rope.proportion = p.number_or("partial_rotary_factor", 1, 0, 1);
    p.only("factor", {1, 1.0});
    p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor", "factor"});
  } else {
    p.expect(type == "default",
             "rope type \"{}\" is not supported; supported: default, linear, llama3, yarn, "
             "proportional, dynamic (up to max_position_embeddings)",
             type);
    if (!p.holds("factor", {1, 1.0})) {
      p.expect(!p.has("factor"), "rope factor {} requires a rope type: linear, llama3, yarn",
               p.shown("factor"));
    }
    p.ignore({"factor"});
    p.only_keys({"rope_type", "type", "rope_theta", "partial_rotary_factor", kOriginal, "factor",
                 "mrope_section", "mrope_interleaved"});
  }
  // Multimodal rope splits pairs among image coordinates; text has the same position in all of
  // them.
  p.ignore({"mrope_section", "mrope_interleaved"});
  return rope;
}

}  // namespace

double read_partial_rotary_factor(const ConfigFile& config, double fallback) {
  ConfigFile p = rope_object(config);
  double outer = config.number_or("partial_rotary_factor", fallback, 0, 1);
  double part = p.number_or("partial_rotary_factor", outer, 0, 1);
  config.expect(!config.has("partial_rotary_factor") || part == outer,
                "partial_rotary_factor is {} and, in {}, {}; keep one", outer, rope_key(config),
                part);
  for (const std::string& type : p.keys()) {
    if (p.is_object(type)) part = p.object(type).number_or("partial_rotary_factor", part, 0, 1);
  }
  return part;
}

RopeConfig read_rope(const ConfigFile& config, int64_t rotary_dim, int64_t context_tokens,
                     double theta_default) {
  // rope_scaling would silently replace rope_parameters, so reject files that have both.
  bool both = config.has("rope_scaling") && config.has("rope_parameters");
  config.expect(!both, "both rope_scaling and rope_parameters are given; keep one");
  ConfigFile p = rope_object(config);
  double theta = config.number_or("rope_theta", theta_default, kThetaMin, kThetaMax);
  RopeConfig rope{.rotary_dim = rotary_dim, .theta = theta};
  rope.original_context_tokens =
      config.number_or(kOriginal, context_tokens, 1, kOriginalContextMax);
  bool outer_original = config.has(kOriginal);

  std::vector<std::string> types = p.keys();
  bool nested = std::ranges::any_of(types, [&](const auto& key) { return p.is_object(key); });
  if (!nested) return read_parameters(p, context_tokens, outer_original, rope);
  std::optional<RopeConfig> first;
  for (const std::string& type : types) {
    config.expect(p.is_object(type),
                  "{}: {} = {} is next to per-layer-type parameters, which is not supported",
                  rope_key(config), type, p.shown(type));
    if (!p.is_object(type)) continue;
    RopeConfig of_type = read_parameters(p.object(type), context_tokens, outer_original, rope);
    config.expect(
        !first || of_type == *first,
        "{}: {} and {} have different parameters, which this architecture does not support",
        rope_key(config), types[0], type);
    first = of_type;
  }
  return *first;
}

RopeConfig read_rope_of_type(const ConfigFile& config, std::string_view type, int64_t rotary_dim,
                             int64_t context_tokens, double theta_default) {
  RopeConfig rope{.rotary_dim = rotary_dim, .theta = theta_default};
  rope.original_context_tokens = context_tokens;
  ConfigFile p = rope_object(config);
  if (p.is_object("full_attention") || p.is_object("sliding_attention")) {
    p.only_keys({"full_attention", "sliding_attention"});
    return read_parameters(p.object(type), context_tokens, false, rope);
  }
  return type == "full_attention" ? read_parameters(p, context_tokens, false, rope) : rope;
}

int64_t stretched_context_tokens(const RopeConfig& rope) {
  if (rope.type != RopeType::kYarn) return 0;
  return static_cast<int64_t>(
      std::min(rope.original_context_tokens * rope.factor, kOriginalContextMax));
}

}  // namespace banyan
