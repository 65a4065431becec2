#include "support/safetensors.h"

#include <nlohmann/json.hpp>

namespace banyan::test {

std::string safetensors_file(std::string_view header, std::string_view data) {
  std::string file;
  for (int byte = 0; byte < 8; ++byte) {
    file += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * byte));
  }
  return file.append(header).append(data);
}

std::string safetensors_file(const std::vector<TestTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const TestTensor& tensor : tensors) {
    size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  return safetensors_file(header.dump(), data);
}

}  // namespace banyan::test
