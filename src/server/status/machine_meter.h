// Measures the limits of this machine, once, on first request while the engine is idle.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "banyan/config.h"
#include "kernels/limits.h"
#include "llm/engine_thread.h"

namespace banyan {

// Belongs to the delivery thread of the engine thread.
class MachineMeter {
 public:
  // Null if the engine has work: nothing is measured then, and a later call tries again.
  using Then = std::move_only_function<void(const MachineLimits* limits)>;

  // Calls `then` immediately if the limits are known. Otherwise measures between two steps of the
  // engine, which stalls it for some tenths of a second.
  void ask(EngineThread& engine, const EngineConfig& config, Then then);

 private:
  void tell(const std::optional<MachineLimits>& measured);

  std::optional<MachineLimits> limits_;
  std::vector<Then> waiting_;
};

}  // namespace banyan
