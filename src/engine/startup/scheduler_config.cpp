#include "engine/startup/scheduler_config.h"

#include "base/log.h"
#include "engine/startup/memory_plan.h"

namespace banyan {

SchedulerConfig scheduler_config(const EngineConfig& config, const Runner& runner) {
  StateClasses classes = runner.classes();
  if (config.reuse_generated_state && classes.prompt_only) {
    spdlog::warn(
        "reuse_generated_state: answers that resume after generated tokens are not bit for bit "
        "those of a run without the cache");
    classes.prompt_only = false;
  }
  return {.policy = schedule_policy(config.schedule_policy),
          .aging_period = config.aging_period,
          .radix_cache = config.radix_cache,
          .running_max = config.running_max,
          .prefill_rows_max = runner.info().prefill_rows_max,
          .snapshot_interval_tokens = config.snapshot_interval_tokens,
          .classes = classes,
          .units = unit_counts(runner.info())};
}

}  // namespace banyan
