// Benchmark programs: those of the SGLang paper, section 6, with text derived only from the
// instance's index.
//
// Lengths and number of calls do not depend on the model's output, so that every model (even with
// random weights) and every backend does the same work.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "banyan/program.h"

namespace banyan {

struct Workload {
  std::string_view name;
  std::string_view what;
  void (*body)(State& state, size_t index);
};

// The list of workloads.
std::span<const Workload> workloads();

}  // namespace banyan
