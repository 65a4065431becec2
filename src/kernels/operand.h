// What a product multiplies.
#pragma once

#include <cstdint>

namespace banyan {

// The narrowest numbers that a product may round its operands to: a processor has a rate for each.
enum class Operand : uint8_t { kF32, kBF16, kInt8 };

inline constexpr int kOperands = 3;

}  // namespace banyan
