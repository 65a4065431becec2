// Builds an engine's configuration from the options of `banyan serve`, with all their aliases. For
// bindings whose users know those names.
#pragma once

#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"

namespace banyan {

// Parses {"--model-path=models/x", "--max-running-requests=32", "--disable-radix-cache"}. Options
// of SGLang, vLLM or llama-server without a meaning here are accepted or refused by name, as in
// `banyan serve`; options of the HTTP server are unknown. --log-level takes effect.
Result<EngineConfig> parse_engine_options(const std::vector<std::string>& arguments);

}  // namespace banyan
