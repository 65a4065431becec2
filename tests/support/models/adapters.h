// LoRA adapters for golden models, as PEFT saves them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::test {

struct TestAdapter {
  // The adapter of tests/golden/adapters for that golden model; with a seed, one of other weights.
  explicit TestAdapter(const std::string& golden, int seed = 0);
  // With nothing adapted but what `config` says.
  TestAdapter() = default;

  TestTensor& tensor(
      const std::string& name);  // after "base_model.model."; aborts if there is none
  // Keeps the modules whose names contain `part`.
  void keep(const std::string& part);
  // Writes adapter_config.json and adapter_model.safetensors to `folder`; returns its path.
  std::string save(const TemporaryFolder& folder) const;

  Json config;
  std::vector<TestTensor> tensors;
};

}  // namespace banyan::test
