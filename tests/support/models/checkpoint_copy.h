// Copies of golden checkpoints with something changed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "banyan/engine.h"
#include "base/json.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::test {

struct CheckpointCopy {
  // `golden` names a checkpoint under tests/golden/models that has one file of weights.
  explicit CheckpointCopy(const std::string& golden);

  TestTensor& tensor(const std::string& name);  // aborts when there is none
  void erase(const std::string& name);
  void rename(const std::string& name, const std::string& to);
  // Writes `value` to element `index` of an F32 tensor.
  void set(const std::string& name, size_t index, float value);
  // Writes config.json and model.safetensors.
  void save(const TemporaryFolder& folder) const;

  Json config;
  std::vector<TestTensor> tensors;
};

// The logits of a few tokens, as a changed golden checkpoint computes them.
std::vector<float> logits_of(
    const std::string& golden, const std::function<void(CheckpointCopy&)>& change = [](auto&) {});

// inspect_model() of a changed golden checkpoint.
Result<EngineInfo> inspect_changed(
    const std::string& golden, const std::function<void(CheckpointCopy&)>& change = [](auto&) {});
// Expects that it is refused with a message that has `words`.
void expect_refused(const std::string& golden, const std::string& words,
                    const std::function<void(CheckpointCopy&)>& change);

}  // namespace banyan::test
