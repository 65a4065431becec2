// Loads a model from a checkpoint folder or a GGUF file. config.json names the family, the family
// declares its weights, and the checkpoint supplies them.
//
// Loading runs on one thread, with a thread pool to pack weights; the result owns all weight
// memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "banyan/config.h"
#include "banyan/status.h"
#include "base/digest.h"
#include "models/model.h"
#include "models/registry.h"
#include "weights/builder.h"

namespace banyan {

struct LoadedModel {
  std::unique_ptr<Model> model;
  WeightStore weights;       // owns the memory of the model's matrices and vectors
  WeightStore head_weights;  // those of its EAGLE-3 head, if any
  std::vector<StateSpec> states;
  WeightCounts counts;
  std::vector<MatrixRecord> matrices;
  std::vector<ExpertLayer> expert_layers;
  AdapterSites adapter_sites;
  DType dtype = DType::kBF16;  // of weights that are not quantised; that of adapters
  Rank rank;                   // which rank's shard this is
  // Keys that the family and the head have read: ConfigFile::values().
  std::map<std::string, std::string> config_values;
  std::optional<Digest> weights_digest;  // only with EngineConfig::state_digest and real weights
};

// What a load runs on, and whether it is dry.
struct LoadContext {
  const KernelTable* kernels = nullptr;
  const DeviceQueue* queue = &host_queue();  // queue of the kernels' device; unused in a dry load
  ThreadPool* threads = nullptr;
  bool dry = false;    // check the checkpoint and count weights without reading them
  bool quiet = false;  // without warnings, which another load of the same model gives
  Rank rank;           // which rank's shard to load
  LoadProgress progress;
  std::span<const Family> families = registered_families();
};

// kExhausted if `available_bytes` do not suffice for the weights.
Status check_weights_fit(const EngineConfig& config, int64_t weight_bytes, int64_t available_bytes);

// Uses those fields of `config` that select the model and its format in memory. With state_digest
// the weights are hashed, which reads all of them even in a dry load.
Result<LoadedModel> load_model(const EngineConfig& config, const LoadContext& context);

}  // namespace banyan
