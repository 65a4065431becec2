// What steps take, fitted to measured ones, and as JSON:
//
//   {"step_times": {"step_ms": 10.0, "row_us": 125.0, "decode_row_us": 100.0}}
//
// `banyan bench one-batch --json` writes it; emulated workers (engine/emulator.h) and simulated
// ones (fleet/simulated_worker.h) read it. What attention costs by the length of the context is
// part of the rows': measure at the lengths that matter.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "banyan/config.h"
#include "base/json.h"

namespace banyan {

// Steps that were timed together.
struct StepsObserved {
  int64_t steps = 0;
  int64_t prompt_rows = 0;  // over all of them
  int64_t decode_rows = 0;
  double time_s = 0;
};

struct FittedSteps {
  StepTimes times;
  double error = 0;  // root mean square of the relative differences to what was observed
};

// Least squares of relative errors; no time is negative. Error: the observations cannot separate
// the three times, for example if all have one batch size.
Result<FittedSteps> fit_step_times(std::span<const StepsObserved> observed);

Json to_json(const FittedSteps& fit);
// The object under "step_times" of such a file; its other keys are ignored. Errors name the file
// and the key.
Result<StepTimes> read_step_times(const std::string& path);

}  // namespace banyan
