// The shapes of llama.cpp's server that more than one of its endpoints writes.
#pragma once

#include <span>
#include <string_view>

#include "banyan/request.h"
#include "base/json.h"
#include "server/generation.h"
#include "server/generation_times.h"
#include "server/json/writer.h"

namespace banyan {

// "timings": {...}. The first token costs no step of its own, so rates are over the others.
void write_timings(JsonWriter& writer, const Choice& choice, const GenerationTimes& times);

// {"error": {"code": the status, "message", "type"}}
Json llama_error(int status, std::string_view message, std::string_view code);

// How llama.cpp's server samples where a request is silent.
SamplingParams llama_sampling();

// What of these shows in `generation_settings` and /props.
// `never`: tokens that may not come, which show as a bias of null.
Json llama_settings(const SamplingParams& sampling, const GenerationOptions& options,
                    std::span<const TokenId> never = {});

}  // namespace banyan
