// Any bytes as a model.safetensors.index.json: refused, or names plain files only.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "weights/files/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto index = banyan::parse_shard_index({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!index) {
    CHECK(index.error().message.starts_with("fuzz: "));
    return 0;
  }
  const std::string* previous = nullptr;
  for (const auto& [tensor, shard] : *index) {
    CHECK(previous == nullptr || *previous < tensor, "{} is out of order", tensor);
    CHECK(shard.find('/') == std::string::npos && shard != ".." && !shard.empty());
    previous = &tensor;
  }
  return 0;
}
