// From a checkpoint folder to a model: config.json names the family, the family declares its
// weights, the checkpoint fills them.
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
  std::optional<Digest> weights_digest;  // with ModelOptions::digest, unless weights are random
};

struct ModelOptions {
  std::string folder;
  std::string gguf;                  // a file whose weights stand in for the folder's; empty: none
  std::string dtype = "auto";        // auto, bf16, f32
  std::string load_format = "auto";  // auto, dummy
  std::string quantization = "none";
  std::vector<std::string> quantization_overrides;
  std::string mla_prefill = "absorbed";  // absorbed, expanded
  const KernelTable* kernels = nullptr;
  const DeviceQueue* queue = &host_queue();  // of the kernels' device, unless the load is dry
  ThreadPool* threads = nullptr;
  bool dry = false;     // check the checkpoint and count, without reading weights
  Rank rank;            // whose part is loaded
  bool digest = false;  // hash the weights, which `threads` read whole, even in a dry load
  LoadProgress progress;
  std::span<const Family> families = registered_families();
};

Result<LoadedModel> load_model(const ModelOptions& options);

}  // namespace banyan
