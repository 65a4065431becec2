// Any bytes as a GGUF file: refused, or every promise of parse_gguf holds.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "weights/files/gguf.h"
#include "weights/files/gguf_blocks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  auto header = banyan::parse_gguf(file, "fuzz");
  if (!header) {
    CHECK(header.error().message.starts_with("fuzz: "));
    return 0;
  }
  size_t bytes = 0;
  for (const banyan::TensorInfo& tensor : header->tensors) {
    CHECK(!tensor.shape.empty() && tensor.shape.size() <= 4);
    int64_t elements = 1;
    for (int64_t extent : tensor.shape) elements *= extent;
    banyan::BlockShape block = {1, static_cast<int64_t>(dtype_bytes(tensor.dtype))};
    if (tensor.blocks != banyan::BlockFormat::kNone) block = banyan::block_shape(tensor.blocks);
    CHECK(tensor.shape.back() % block.numbers == 0);
    CHECK(elements / block.numbers * block.bytes == std::ssize(tensor.bytes));
    CHECK(tensor.bytes.data() >= file.data());
    CHECK(tensor.bytes.data() + tensor.bytes.size() <= file.data() + file.size());
    bytes += tensor.bytes.size();
    for (const char* architecture : {"llama", "gpt-oss", "gemma2"}) {
      auto found = banyan::find_gguf_architecture(architecture, "fuzz");
      (void)banyan::gguf_tensor_name(**found, tensor.name);
    }
  }
  CHECK(bytes <= size, "{} of {}", bytes, size);  // no two overlap
  (void)banyan::read_gguf_tokenizer(header->pairs);
  (void)banyan::read_gguf_tokenizer_config(header->pairs);
  return 0;
}
