// An engine's configuration from the options of `banyan serve`, with all the names that it knows;
// for bindings, whose users know those names.
#pragma once

#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"

namespace banyan {

// From {"--model-path=models/x", "--max-running-requests=32", "--disable-radix-cache"}. Options
// that SGLang, vLLM or llama-server have and that mean nothing here are accepted or refused by
// name, as `banyan serve` does; those of the server itself are unknown. --log-level takes effect.
Result<EngineConfig> parse_engine_options(const std::vector<std::string>& arguments);

}  // namespace banyan
