// The operand types of products.
#pragma once

#include <cstdint>

namespace banyan {

// The narrowest type to which a product may round its operands; the processor's peak rate depends
// on it.
enum class Operand : uint8_t { kF32, kBF16, kInt8 };

inline constexpr int kOperands = 3;

}  // namespace banyan
