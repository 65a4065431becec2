// Defaults for request fields, from the server's command line.
#pragma once

#include <cstdint>
#include <optional>

#include "banyan/request.h"
#include "base/json.h"

namespace banyan {

// Absent: the model's recommendation or the protocol's default.
struct RequestDefaults {
  std::optional<float> temperature, top_p, min_p;
  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<int> top_k, repeat_last_n;
  std::optional<uint64_t> seed;
  std::optional<uint64_t> drawn_seed;  // used if the request has none; absent: random
  std::optional<int64_t> max_new_tokens;
  std::optional<int64_t> thinking_tokens_max;  // reasoning_budget
  std::string adapter;                       // of requests that name none; empty: the model itself
  Json template_variables = Json::object();  // for chat templates

  SamplingParams apply(SamplingParams sampling) const {
    sampling.temperature = temperature.value_or(sampling.temperature);
    sampling.top_p = top_p.value_or(sampling.top_p);
    sampling.min_p = min_p.value_or(sampling.min_p);
    sampling.repetition_penalty = repetition_penalty.value_or(sampling.repetition_penalty);
    sampling.presence_penalty = presence_penalty.value_or(sampling.presence_penalty);
    sampling.frequency_penalty = frequency_penalty.value_or(sampling.frequency_penalty);
    sampling.repeat_last_n = repeat_last_n.value_or(sampling.repeat_last_n);
    sampling.top_k = top_k.value_or(sampling.top_k);
    return sampling;
  }
};

}  // namespace banyan
