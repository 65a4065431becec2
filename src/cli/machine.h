// What a benchmark ran on, and what the system allows.
#pragma once

#include "banyan/engine.h"
#include "base/json.h"

namespace banyan::cli {

// {cpu, processors, memory_bytes}: the processor's name and how many this process may use.
Json describe_machine();
// The same with what `engine` uses of it: threads, kernels.
Json describe_machine(const EngineInfo& engine);

// Allows this process as many open files as it may have: a connection is one, and the usual soft
// limit is 1,024.
void raise_descriptor_limit();

}  // namespace banyan::cli
