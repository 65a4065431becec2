// Programs to measure with: the shapes of the paper's benchmarks (SGLang, section 6), over text
// that is drawn from nothing but an instance's index.
//
// How long the parts are and how many calls there are does not depend on what the model says, so
// that every model, a random one too, and every backend does the same work.
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

// THE LIST.
std::span<const Workload> workloads();

}  // namespace banyan
