// Golden checkpoints with something changed.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::test {

struct CheckpointCopy {
  // `golden` names a checkpoint under tests/golden/models that has one file of weights.
  explicit CheckpointCopy(const std::string& golden);

  TestTensor& tensor(const std::string& name);  // aborts when there is none
  void erase(const std::string& name);
  // Writes `value` to element `index` of an F32 tensor.
  void set(const std::string& name, size_t index, float value);
  // Writes config.json and model.safetensors.
  void save(const TemporaryFolder& folder) const;

  Json config;
  std::vector<TestTensor> tensors;
};

}  // namespace banyan::test
