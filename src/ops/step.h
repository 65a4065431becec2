// Everything that a forward pass may use, passed by reference through models, layers and ops. There
// is no hidden context.
#pragma once

#include <span>

#include "base/signed.h"
#include "base/trace_log.h"
#include "cache/state_pools.h"
#include "dist/comm.h"
#include "kernels/kernel_table.h"
#include "ops/batch.h"
#include "ops/step_inputs.h"
#include "tensor/arena.h"
#include "tensor/tensor.h"

namespace banyan {

// Room for the chosen keys of each row, for models in which an index chooses them. A layer with an
// index writes it; a layer without one uses the choice of the last layer that has one.
struct KeyChoice {
  KeyRun* runs = nullptr;         // [rows, runs_max]
  int32_t* run_counts = nullptr;  // [rows]
  int32_t* key_counts = nullptr;  // [rows]
  int64_t runs_max = 0;

  SelectedKeys selected() const {
    return {.runs = runs,
            .run_counts = run_counts,
            .key_counts = key_counts,
            .runs_max = runs_max,
            .keys_max = runs_max};  // entries of one token
  }
};

struct AdapterTable;  // ops/adapters.h

struct Step {
  const KernelTable& kernels;
  Launch launch;
  Arena& arena;
  StatePools& pools;
  const Batch& batch;
  const StepInputs& inputs;  // of the batch
  Comm& comm = lone_rank();  // with the other ranks that run this step

  // What rows with an adapter add to products; null: no row has one, whatever the batch says.
  const AdapterTable* adapters = nullptr;

  // On the device: the draws of the previous step, for tokens that refer to them
  // (Batch::kSampleOfRow); null if none do.
  const DrawResult* drawn = nullptr;

  // Counts how often each expert of each layer was chosen; kernels increment it. Null: not
  // requested.
  int64_t* expert_counts = nullptr;

  TraceLog* trace = nullptr;  // null: not profiling

  // Layers whose hidden state the model also outputs, ascending; see Outputs.
  std::span<const int> auxiliary_layers;

  KeyChoice choice;  // of the last layer with an index of tokens; no room in other models

  // Where the units of a state's class are.
  const UnitTable& table(StateId state) const { return at(batch.tables, pools.class_of(state)); }
  const UnitInputs& table_inputs(StateId state) const {
    return at(inputs.tables, pools.class_of(state));
  }

  // A new uninitialised f32 tensor in the arena.
  Tensor allocate(std::initializer_list<int64_t> shape);

  // Copies a host array to the arena for kernels to read.
  template <class T>
  const T* upload(std::span<const T> array) const {
    T* to = arena.allocate_array<T>(std::ssize(array));
    kernels.device->upload(launch.queue, to, array.data(), array.size_bytes());
    return to;
  }

  // Copies x to a tensor of the same shape that does not overlap it.
  void copy(Tensor x, Tensor to) const;
};

}  // namespace banyan
