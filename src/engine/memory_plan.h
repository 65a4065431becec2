// How much memory a loaded model's weights, states and steps take, before any of it is reserved.
#pragma once

#include "banyan/config.h"
#include "banyan/engine.h"
#include "base/thread_pool.h"
#include "cache/state_classes.h"
#include "kernels/kernel_table.h"
#include "models/load.h"

namespace banyan {

// Rows of logits computed at a time; a decode step of that many sequences is one block.
constexpr int64_t kLogitRowsMax = 64;

// Rows of one step at most.
int64_t step_rows_max(const EngineConfig& config, const EngineInfo& info);

// How many units of each class the pools have.
UnitCounts unit_counts(const EngineInfo& info);

// Bytes of step arena that `rows` rows need when the residual stream entering each of
// `auxiliary_layers` layers is handed out: found by running a step over kernels that do nothing.
size_t measure_step_bytes(const LoadedModel& model, const KernelTable& kernels, int64_t rows,
                          std::span<const int> auxiliary_layers);

// Fills in everything, choosing how many tokens the pages hold if states and a step may take
// `available_bytes`; none when that does not suffice for one page or for what was asked for.
Result<EngineInfo> plan_memory(const EngineConfig& config, const LoadedModel& model,
                               const KernelTable& kernels, int threads, int64_t available_bytes);

}  // namespace banyan
