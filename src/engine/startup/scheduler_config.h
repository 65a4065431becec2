// What the scheduler of an engine is to know of its configuration and its memory.
#pragma once

#include "banyan/config.h"
#include "engine/runner.h"
#include "engine/schedule/scheduler.h"

namespace banyan {

SchedulerConfig scheduler_config(const EngineConfig& config, const Runner& runner);

}  // namespace banyan
