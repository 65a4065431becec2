// Formats shared by the endpoints of llama.cpp's server. Stateless; thread-safe.
#pragma once

#include <span>
#include <string_view>

#include "banyan/request.h"
#include "base/json.h"
#include "server/generation.h"
#include "server/generation_times.h"
#include "server/json/writer.h"

namespace banyan {

// "timings": {...}. The first token takes no step of its own, so rates are over the others.
void write_timings(JsonWriter& writer, const Choice& choice, const GenerationTimes& times);

// "prompt_progress": {...}, for a progress event. `times` has taken it.
void write_progress(JsonWriter& writer, const Choice& choice, const TokenEvent& event,
                    const GenerationTimes& times);

// {"error": {"code": the status, "message", "type"}}
Json llama_error(int status, std::string_view message, std::string_view code);

// The sampling defaults of llama.cpp's server.
SamplingParams llama_sampling();

// The part of these parameters that `generation_settings` and /props show.
//
// `never`: banned tokens, shown as a bias of null.
Json llama_settings(const SamplingParams& sampling, const GenerationOptions& options,
                    std::span<const TokenId> never = {});

}  // namespace banyan
