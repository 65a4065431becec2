// The machine that a benchmark runs on, and system limits.
#pragma once

#include "banyan/engine.h"
#include "base/json.h"

namespace banyan::cli {

// {cpu, processors, memory_bytes}: the processor's name and the number this process may use.
Json describe_machine();
// Adds what `engine` uses: threads, kernels.
Json describe_machine(const EngineInfo& engine);

// Raises the soft limit on open files to the hard limit. Each connection needs one, and the usual
// soft limit is 1,024.
void raise_descriptor_limit();

}  // namespace banyan::cli
