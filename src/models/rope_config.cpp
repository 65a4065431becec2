#include "models/rope_config.h"

#include <algorithm>
#include <optional>
#include <string>

namespace banyan {
namespace {

constexpr double kThetaMin = 1.000001, kThetaMax = 1e15;
constexpr double kFactorMin = 1e-3, kFactorMax = 1e6;
constexpr double kOriginalContextMax = 1e9;

// A value that Hugging Face also takes for absent when it is 0.
double number_or_if_zero(const ConfigFile& p, std::string_view key, double fallback) {
  double value = p.number_or(key, fallback, 0, kFactorMax);
  return value == 0 ? fallback : value;
}

void read_llama3(const ConfigFile& p, RopeConfig& rope) {
  rope.type = RopeType::kLlama3;
  rope.factor = p.number("factor", kFactorMin, kFactorMax);
  rope.low_frequency_factor = p.number("low_freq_factor", kFactorMin, kFactorMax);
  rope.high_frequency_factor = p.number("high_freq_factor", kFactorMin, kFactorMax);
  p.expect(rope.high_frequency_factor > rope.low_frequency_factor,
           "rope high_freq_factor {} must be above low_freq_factor {}", rope.high_frequency_factor,
           rope.low_frequency_factor);
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
}

}  // namespace

RopeConfig read_rope(const ConfigFile& config, int64_t rotary_dim, int64_t context_tokens,
                     double theta_default) {
  // rope_scaling replaces rope_parameters whole where both are given.
  bool scaled = config.has("rope_scaling");
  ConfigFile p = config.object(scaled ? "rope_scaling" : "rope_parameters");
  config.expect(!(scaled && config.has("rope_parameters")),
                "both rope_scaling and rope_parameters are given; keep one");

  RopeConfig rope{.rotary_dim = rotary_dim};
  double outer_theta = config.number_or("rope_theta", theta_default, kThetaMin, kThetaMax);
  rope.theta = p.number_or("rope_theta", outer_theta, kThetaMin, kThetaMax);
  auto context = static_cast<double>(context_tokens);
  constexpr std::string_view kOriginal = "original_max_position_embeddings";
  double inner = p.number_or(kOriginal, context, 1, kOriginalContextMax);
  rope.original_context_tokens = config.number_or(kOriginal, inner, 1, kOriginalContextMax);

  std::string old_name = p.text_or("type", "default");
  std::string type = p.text_or("rope_type", old_name);
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = p.number("factor", kFactorMin, kFactorMax);
  } else if (type == "llama3") {
    read_llama3(p, rope);
  } else if (type == "yarn") {
    read_yarn(p, context, rope);
  } else if (type == "dynamic") {
    // Differs from the default only beyond max_position_embeddings, where no sequence goes.
    p.ignore({"factor"});
  } else {
    config.expect(type == "default",
                  "rope type \"{}\" is not supported; supported: default, linear, llama3, yarn, "
                  "dynamic (up to max_position_embeddings)",
                  type);
  }
  return rope;
}

int64_t stretched_context_tokens(const RopeConfig& rope) {
  if (rope.type != RopeType::kYarn) return 0;
  return static_cast<int64_t>(
      std::min(rope.original_context_tokens * rope.factor, kOriginalContextMax));
}

}  // namespace banyan
