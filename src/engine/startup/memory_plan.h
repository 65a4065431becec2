// Computes how much memory weights, states and steps take, before any of it is allocated. Pure
// functions of the config and a loaded (or dry-loaded) model.
#pragma once

#include "banyan/config.h"
#include "banyan/engine.h"
#include "base/threads/thread_pool.h"
#include "cache/state_classes.h"
#include "engine/adapters/adapter_room.h"
#include "kernels/kernel_table.h"
#include "models/load.h"

namespace banyan {

// Logits are computed in blocks of this many rows; a decode step of up to 64 sequences is one
// block.
constexpr int64_t kLogitRowsMax = 64;

// The maximum number of rows in a step.
int64_t step_rows_max(const EngineConfig& config, const EngineInfo& info);

// The number of units of each class in the pools.
UnitCounts unit_counts(const EngineInfo& info);

// Bytes of step arena for `rows` rows, if the inputs of `auxiliary_layers` layers are returned too.
// Measured by running a step with kernels that do nothing. `adapters`: those that rows may have, or
// null.
size_t measure_step_bytes(const LoadedModel& model, const KernelTable& kernels, int64_t rows,
                          std::span<const int> auxiliary_layers,
                          const AdapterTable* adapters = nullptr);

// Without memory as yet; null: no adapter may be loaded. The model must outlive it.
std::unique_ptr<AdapterRoom> adapter_room(const EngineConfig& config, const LoadedModel& model,
                                          const KernelTable& kernels);

// Fills in EngineInfo and chooses the size of the KV cache, given `available_bytes` for states and
// one step. Leaves it 0 if that is too little for one page, or for the requested size.
Result<EngineInfo> plan_memory(const EngineConfig& config, const LoadedModel& model,
                               const KernelTable& kernels, int threads, int64_t available_bytes);

// Replaces the number of units of each class, and what follows from it.
void set_units(const EngineConfig& config, const LoadedModel& model, const UnitCounts& units,
               EngineInfo& info);

}  // namespace banyan
