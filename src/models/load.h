// From a checkpoint folder, or a GGUF file, to a model: config.json names the family, the family
// declares its weights, the checkpoint fills them.
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
  WeightStore weights;  // what the model's matrices and vectors look into
  std::vector<StateSpec> states;
  WeightCounts counts;
  std::vector<MatrixRecord> matrices;
  std::vector<ExpertLayer> expert_layers;
  Rank rank;                                         // whose part it is
  std::map<std::string, std::string> config_values;  // that the family read: ConfigFile::values()
  std::optional<Digest>
      weights_digest;  // with EngineConfig::state_digest, unless weights are random
};

// What a load runs on, and how far it goes.
struct LoadContext {
  const KernelTable* kernels = nullptr;
  const DeviceQueue* queue = &host_queue();  // of the kernels' device, unless the load is dry
  ThreadPool* threads = nullptr;
  bool dry = false;  // check the checkpoint and count, without reading weights
  Rank rank;         // whose part is loaded
  LoadProgress progress;
  std::span<const Family> families = registered_families();
};

// Of `config`, what says which model it is and how it is kept in memory. With state_digest, weights
// are hashed, even in a dry load, for which the threads read them whole.
Result<LoadedModel> load_model(const EngineConfig& config, const LoadContext& context);

}  // namespace banyan
