#include "support/models/adapters.h"

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"

namespace banyan::test {

TestAdapter::TestAdapter(const std::string& golden, int seed) {
  std::string folder = source_path("tests/golden/adapters/" + golden);
  config = Json::parse(value_or_abort(read_file(folder + "/adapter_config.json")));
  std::string recipe = value_or_abort(read_file(folder + "/weights.txt"));
  if (seed > 0) recipe.replace(0, recipe.find('\n'), std::to_string(seed));
  tensors = grow_tensors(recipe);
}

TestTensor& TestAdapter::tensor(const std::string& name) {
  auto it = std::ranges::find(tensors, "base_model.model." + name, &TestTensor::name);
  CHECK(it != tensors.end(), "{}", name);
  return *it;
}

void TestAdapter::keep(const std::string& part) {
  std::erase_if(tensors, [&](const TestTensor& t) { return !t.name.contains(part); });
}

std::string TestAdapter::save(const TemporaryFolder& folder) const {
  folder.write("adapter_config.json", config.dump());
  folder.write("adapter_model.safetensors", safetensors_file(tensors));
  return folder.path();
}

}  // namespace banyan::test
