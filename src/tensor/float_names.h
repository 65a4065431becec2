// The names of floating-point types, in options and config files.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "tensor/dtype.h"

namespace banyan {

// Other names of bf16, f16 and f32: Hugging Face's and those of options of vLLM and SGLang.
struct FloatAlias {
  std::string_view name;
  DType dtype;
};
inline constexpr std::array kFloatAliases = {
    FloatAlias{"bfloat16", DType::kBF16}, FloatAlias{"float16", DType::kF16},
    FloatAlias{"fp16", DType::kF16},      FloatAlias{"half", DType::kF16},
    FloatAlias{"float32", DType::kF32},   FloatAlias{"fp32", DType::kF32},
    FloatAlias{"float", DType::kF32},
};

inline constexpr std::optional<DType> float_dtype(std::string_view name) {
  if (name == "bf16") return DType::kBF16;
  if (name == "f16") return DType::kF16;
  if (name == "f32") return DType::kF32;
  for (const FloatAlias& alias : kFloatAliases) {
    if (name == alias.name) return alias.dtype;
  }
  return std::nullopt;
}

}  // namespace banyan
