// Who proposes tokens ahead of the model, under the names that SGLang, vLLM and llama.cpp have.
#pragma once

#include "banyan/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

void add_speculation_options(CLI::App& app, EngineConfig& config);

}  // namespace banyan::cli
