// What this machine can do at most, measured once, when somebody first asks and nothing is running.
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
  // Null while the engine has work: nothing is measured then, and the next who asks tries again.
  using Then = std::move_only_function<void(const MachineLimits* limits)>;

  // Runs `then` at once if the limits are known, else between two steps of the engine, which
  // measuring holds up for some tenths of a second.
  void ask(EngineThread& engine, const EngineConfig& config, Then then);

 private:
  void tell(const std::optional<MachineLimits>& measured);

  std::optional<MachineLimits> limits_;
  std::vector<Then> waiting_;
};

}  // namespace banyan
