#include "program/remote/sampling_json.h"

#include <string>

namespace banyan {
namespace {

void put_dry(const SamplingParams& sampling, Json& out) {
  out["dry_multiplier"] = sampling.dry_multiplier;
  out["dry_base"] = sampling.dry_base;
  out["dry_allowed_length"] = sampling.dry_allowed_length;
  out["dry_penalty_last_n"] = sampling.dry_penalty_last_n;
  if (sampling.dry_sequence_breakers) {
    out["dry_sequence_breakers"] = *sampling.dry_sequence_breakers;
  }
}

}  // namespace

void put_sampling(const SamplingParams& sampling, const char* seed, Json& out) {
  out["temperature"] = sampling.temperature;
  if (sampling.top_p != 1) out["top_p"] = sampling.top_p;
  if (sampling.top_k != 0) out["top_k"] = sampling.top_k;
  if (sampling.min_p != 0) out["min_p"] = sampling.min_p;
  if (sampling.frequency_penalty != 0) out["frequency_penalty"] = sampling.frequency_penalty;
  if (sampling.presence_penalty != 0) out["presence_penalty"] = sampling.presence_penalty;
  if (sampling.repetition_penalty != 1) out["repetition_penalty"] = sampling.repetition_penalty;
  if (sampling.has_penalties() && sampling.repeat_last_n != -1) {
    out["repeat_last_n"] = sampling.repeat_last_n;
  }
  if (sampling.typical_p != 1) out["typical_p"] = sampling.typical_p;
  if (sampling.xtc_probability != 0) {
    out["xtc_probability"] = sampling.xtc_probability;
    out["xtc_threshold"] = sampling.xtc_threshold;
  }
  if (sampling.has_dry()) put_dry(sampling, out);
  for (const auto& [token, bias] : sampling.logit_bias) {
    out["logit_bias"][std::to_string(token)] = bias;
  }
  // Servers parse seeds as signed integers.
  if (sampling.temperature > 0) out[seed] = sampling.seed & 0x7fffffffffffffff;
}

}  // namespace banyan
