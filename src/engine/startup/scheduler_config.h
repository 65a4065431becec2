// Derives the scheduler's configuration from the engine's and from the memory plan.
#pragma once

#include "banyan/config.h"
#include "engine/runner.h"
#include "engine/schedule/scheduler.h"

namespace banyan {

SchedulerConfig scheduler_config(const EngineConfig& config, const Runner& runner);

}  // namespace banyan
