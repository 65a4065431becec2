#include "support/models/checkpoint_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "support/drive.h"
#include "support/models/grown_checkpoint.h"
#include "weights/files/safetensors.h"

namespace banyan::test {

CheckpointCopy::CheckpointCopy(const std::string& golden) {
  std::string folder = golden_folder(golden);
  auto text = read_file(folder + "/config.json");
  CHECK(text.has_value(), "{}", text.error().message);
  config = Json::parse(*text);
  auto file = SafetensorsFile::open(folder + "/model.safetensors");
  CHECK(file.has_value(), "{}", file.error().message);
  for (const TensorInfo& tensor : file->tensors()) {
    tensors.push_back({tensor.name,
                       std::string(dtype_name(tensor.dtype)),
                       tensor.shape,
                       {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}});
  }
}

TestTensor& CheckpointCopy::tensor(const std::string& name) {
  auto it = std::ranges::find(tensors, name, &TestTensor::name);
  CHECK(it != tensors.end(), "{}", name);
  return *it;
}

void CheckpointCopy::erase(const std::string& name) {
  std::erase_if(tensors, [&](const TestTensor& t) { return t.name == name; });
}

void CheckpointCopy::rename(const std::string& name, const std::string& to) {
  tensor(name).name = to;
}

void CheckpointCopy::set(const std::string& name, size_t index, float value) {
  TestTensor& to = tensor(name);
  CHECK(to.dtype == "F32" && (index + 1) * sizeof(float) <= to.bytes.size(), "{}", name);
  std::memcpy(to.bytes.data() + index * sizeof(float), &value, sizeof(float));
}

void CheckpointCopy::save(const TemporaryFolder& folder) const {
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", safetensors_file(tensors));
}

std::vector<float> logits_of(const std::string& golden,
                             const std::function<void(CheckpointCopy&)>& change) {
  CheckpointCopy copy(golden);
  change(copy);
  TemporaryFolder folder;
  copy.save(folder);
  auto runner = load_runner({.model_path = folder.path(), .threads = 1, .total_tokens_max = 256});
  return all_logits(*runner, std::vector<TokenId>{1, 2, 3, 50}, 64);
}

Result<EngineInfo> inspect_changed(const std::string& golden,
                                   const std::function<void(CheckpointCopy&)>& change) {
  CheckpointCopy copy(golden);
  change(copy);
  TemporaryFolder folder;
  copy.save(folder);
  return inspect_model({.model_path = folder.path(), .threads = 1, .total_tokens_max = 256});
}

void expect_refused(const std::string& golden, const std::string& words,
                    const std::function<void(CheckpointCopy&)>& change) {
  auto info = inspect_changed(golden, change);
  ASSERT_FALSE(info.has_value()) << words;
  EXPECT_NE(info.error().message.find(words), std::string::npos)
      << info.error().message << "\n  does not say: " << words;
}

}  // namespace banyan::test
