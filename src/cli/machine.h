// What a benchmark ran on.
#pragma once

#include "banyan/engine.h"
#include "base/json.h"

namespace banyan::cli {

// {cpu, processors, threads, kernels, memory_bytes}: the processor's name, how many this process
// may use, and what `engine` uses of it.
Json describe_machine(const EngineInfo& engine);

}  // namespace banyan::cli
