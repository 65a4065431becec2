// Shapes in messages.
#pragma once

#include <fmt/ranges.h>

#include <cstdint>
#include <span>
#include <string>

namespace banyan {

// "[36, 40]"
inline std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace banyan
