// Writes GGUF files, valid and deliberately invalid ones, and golden checkpoints as llama.cpp's
// converter writes them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "support/models/checkpoint_copy.h"
#include "support/safetensors.h"

namespace banyan::test {

// The bytes of a GGUF file, piece by piece.
class GgufBytes {
 public:
  template <class T>
  GgufBytes& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  GgufBytes& text(std::string_view value);
  GgufBytes& begin(uint64_t tensors, uint64_t pairs, uint32_t version = 3);
  GgufBytes& pair(std::string_view key, std::string_view value);
  GgufBytes& pair(std::string_view key, const char* value) {
    return pair(key, std::string_view(value));
  }
  GgufBytes& pair(std::string_view key, uint32_t value);
  // An integer as i32 or, if it needs that, i64; a number as f32; a list by its first value.
  GgufBytes& pair(std::string_view key, const Json& value);
  // Dimensions with the fastest first.
  GgufBytes& tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
                    uint64_t offset);
  GgufBytes& data(size_t count, char fill = '\1');
  const std::string& bytes() const { return bytes_; }

 private:
  GgufBytes& value(const Json& value);

  std::string bytes_;
};

// The whole file. Tensors are F32, F16, BF16 or Q8_0, with the fastest dimension last as everywhere
// else.
std::string gguf_file(const Json& pairs, const std::vector<TestTensor>& tensors);

// An f32 matrix in blocks of 32 bytes with a scale; `tensor` becomes what these stand for. Vectors,
// and rows that do not divide, are returned as they are.
TestTensor in_q8_0(TestTensor& tensor);

// What a recipe of tools/make_gguf_recipes.py makes of a golden checkpoint.
struct GgufGolden {
  Json pairs;
  std::vector<TestTensor> tensors;  // with GGUF's names
  CheckpointCopy original;          // the checkpoint that it equals
  bool rounded = false;             // some values are not quite those of the checkpoint
};
std::vector<std::string> gguf_golden_names();
GgufGolden gguf_golden(const std::string& name);
// The smallest of them with a tokenizer: "a", "b", "ab", "<|im_end|>" and made-up tokens.
GgufGolden gguf_golden_with_tokenizer();

}  // namespace banyan::test
