// Any bytes as a safetensors file: refused, or every promise of parse_safetensors holds.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/check.h"
#include "base/checked_math.h"
#include "weights/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  auto header = banyan::parse_safetensors(file, "fuzz");
  if (!header) {
    CHECK(header.error().message.starts_with("fuzz: "));
    return 0;
  }
  size_t covered = 0;
  std::set<std::string> names;
  for (const banyan::TensorInfo& tensor : header->tensors) {
    CHECK(names.insert(tensor.name).second, "{} twice", tensor.name);
    auto elements = banyan::checked_elements(tensor.shape);
    CHECK(elements && *elements * banyan::dtype_bytes(tensor.dtype) == tensor.bytes.size());
    CHECK(tensor.bytes.data() >= file.data());
    CHECK(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
    covered += tensor.bytes.size();
  }
  // A second JSON parser agrees that the header is JSON.
  std::string text(reinterpret_cast<const char*>(data) + 8, size - 8 - covered);
  CHECK(nlohmann::json::accept(text), "{}", text);
  return 0;
}
