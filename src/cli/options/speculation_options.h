// Options of speculative decoding, with the names of SGLang, vLLM and llama.cpp.
#pragma once

#include "banyan/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

void add_speculation_options(CLI::App& app, EngineConfig& config);

}  // namespace banyan::cli
