// A LoRA adapter as PEFT saves it: a folder with adapter_config.json and adapter_model.safetensors.
//
//   "base_model.model." + module + ".lora_A.weight"  [rank, columns of the module]
//   "base_model.model." + module + ".lora_B.weight"  [rows of the module, rank]
//
// The tensors say what is adapted, and the config how it is scaled. Both files are untrusted: a
// tensor of another kind and a setting that would change the computation are refused by name.
// Whether a model has the modules is for others to check.
//
// Immutable after open(), so any thread may read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "weights/files/config_file.h"
#include "weights/files/safetensors.h"
#include "weights/name_pattern.h"

namespace banyan {

// What adapter_config.json says about ranks and scaling, by default and for modules whose names
// match patterns. One thread at a time.
class PeftConfig {
 public:
  static constexpr int64_t kRankMax = 4096;

  // Errors begin with `path`.
  static Result<PeftConfig> parse(std::string_view text, const std::string& path);

  int64_t rank(const std::string& module) const;
  // What B (A x) is multiplied by.
  double scaling(const std::string& module) const;

 private:
  using Pattern = std::pair<NamePattern, double>;
  static Result<std::vector<Pattern>> patterns_of(const ConfigFile& file, const char* key,
                                                  double min, double max);
  static double value_of(const std::vector<Pattern>& patterns, const std::string& module,
                         double otherwise);

  int64_t rank_ = 0;
  double alpha_ = 0;
  bool rank_stabilised_ = false;  // rsLoRA (Kalajdzievski 2023): divided by the root of the rank
  std::vector<Pattern> ranks_, alphas_;
};

struct PeftModule {
  std::string name;  // in the base model: "model.layers.0.self_attn.q_proj"
  const TensorInfo* a = nullptr;
  const TensorInfo* b = nullptr;
  double scaling = 1;

  int64_t rank() const { return a->shape[0]; }
};

class PeftAdapter {
 public:
  static Result<PeftAdapter> open(const std::string& folder);

  const SafetensorsFile& file() const { return file_; }
  std::span<const PeftModule> modules() const { return modules_; }  // sorted by name
  int64_t rank_max() const;

 private:
  PeftAdapter(SafetensorsFile file, std::vector<PeftModule> modules)
      : file_(std::move(file)), modules_(std::move(modules)) {}

  SafetensorsFile file_;
  std::vector<PeftModule> modules_;
};

}  // namespace banyan
