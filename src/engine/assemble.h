// An engine put together from other parts than Engine::load takes: tests bring model families of
// their own, which no checkpoint can name otherwise.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "banyan/engine.h"
#include "engine/drafters/drafter.h"
#include "models/registry.h"

namespace banyan {

class Scheduler;

struct EngineAssembly {
  // Engine::load, where config.json names one of `families`. `drafters` are asked before those that
  // the config names.
  static Result<std::unique_ptr<Engine>> load(const EngineConfig& config,
                                              std::span<const Family> families,
                                              const LoadProgress& progress = {},
                                              std::vector<NamedDrafter> drafters = {});

  // For tests that check invariants between steps.
  static const Scheduler& scheduler(const Engine& engine);
  // Steps that were launched while another was in flight.
  static int64_t overlapped_steps(const Engine& engine);
};

}  // namespace banyan
