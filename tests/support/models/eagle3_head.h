// EAGLE-3 heads for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/safetensors.h"
#include "support/shared.h"

namespace banyan::test {

// Writes the golden head `name` (tests/golden/eagle3), which is for golden model qwen3-moe, after
// `change`.
using ChangeHead = std::function<void(Json& config, std::vector<TestTensor>& tensors)>;
void save_golden_head(
    const std::string& name, const TemporaryFolder& folder,
    const ChangeHead& change = [](auto&, auto&) {});

// A folder with config.json of a head for the golden model `name`. It has no weights, so it loads
// with load_format "dummy". It lasts until the process ends.
std::string random_head_folder(const std::string& name);

}  // namespace banyan::test
