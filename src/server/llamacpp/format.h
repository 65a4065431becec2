// The shapes of llama.cpp's server that more than one of its endpoints writes.
#pragma once

#include <string_view>

#include "banyan/request.h"
#include "base/json.h"

namespace banyan {

// {"error": {"code": the status, "message", "type"}}
Json llama_error(int status, std::string_view message, std::string_view code);

// How llama.cpp's server samples where a request is silent.
SamplingParams llama_sampling();

// What of these shows in `generation_settings` and /props.
Json llama_settings(const SamplingParams& sampling, const GenerationOptions& options);

}  // namespace banyan
