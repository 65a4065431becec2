// Writes safetensors files, valid and deliberately invalid ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::test {

struct TestTensor {
  std::string name;
  std::string dtype;  // as in the file: "F32"
  std::vector<int64_t> shape;
  std::string bytes;
};

// The bytes of a file with this header and these data bytes, valid or not.
std::string safetensors_file(std::string_view header, std::string_view data);

// The bytes of a well-formed file with these tensors, in this order.
std::string safetensors_file(const std::vector<TestTensor>& tensors);

}  // namespace banyan::test
