// Division of sizes that rounds up. Neither number is negative, and b is not 0.
#pragma once

#include <cstdint>

namespace banyan {

constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace banyan
