// Element types of checkpoints and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace banyan {

enum class DType : uint8_t {
  kF32,
  kBF16,
  kF16,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
};

// Bytes of one element.
size_t dtype_bytes(DType dtype);

// The name in safetensors files: "F32", "BF16", "F8_E4M3", "BOOL", ...
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view safetensors_name);

}  // namespace banyan
