#include "support/models/eagle3_head.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"
#include "weights/files/safetensors.h"

namespace banyan::test {
namespace {

Json read_json(const std::string& path) {
  return Json::parse(value_or_abort(read_file(path)));
}

}  // namespace

void save_golden_head(const std::string& name, const TemporaryFolder& folder,
                      const ChangeHead& change) {
  std::string golden = source_path("tests/golden/eagle3/" + name);
  Json config = read_json(golden + ".config.json");
  std::vector<TestTensor> tensors = grow_tensors(value_or_abort(read_file(golden + ".txt")));
  auto file = value_or_abort(SafetensorsFile::open(golden + ".reference.safetensors"));
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name != "d2t" && tensor.name != "t2d") continue;
    const auto* bytes = reinterpret_cast<const char*>(tensor.bytes.data());
    tensors.push_back({tensor.name, tensor.name == "d2t" ? "I64" : "BOOL", tensor.shape,
                       std::string(bytes, tensor.bytes.size())});
  }
  change(config, tensors);
  folder.write("config.json", config.dump());
  folder.write("model.safetensors", safetensors_file(tensors));
}

std::string random_head_folder(const std::string& name) {
  static TemporaryFolder heads;
  std::filesystem::path folder = std::filesystem::path(heads.path()) / name;
  if (!std::filesystem::create_directory(folder)) return folder;  // made before
  Json model = read_json(golden_folder(name) + "/config.json");
  int layers = model.value("num_hidden_layers", model.value("num_layers", 0));
  CHECK(layers > 0, "{}", name);
  int vocabulary = model["vocab_size"];
  Json head = {{"architectures", {"LlamaForCausalLMEagle3"}},
               {"hidden_act", "silu"},
               {"hidden_size", model["hidden_size"]},
               {"intermediate_size", 36},
               {"num_attention_heads", 4},
               {"num_key_value_heads", 2},
               {"head_dim", 10},
               {"num_hidden_layers", 1},
               {"vocab_size", vocabulary},
               {"draft_vocab_size", vocabulary / 2},
               {"eagle_config", {{"eagle_aux_hidden_state_layer_ids", {0, layers / 2, layers}}}}};
  heads.write(name + "/config.json", head.dump());
  return folder;
}

}  // namespace banyan::test
