#include "kernels/scales.h"

#include <algorithm>
#include <cmath>

namespace banyan {

float row_multiplier(const float* scales, int64_t count) {
  constexpr int kExponentMax = 15;  // of f16: the largest scale ends up in [2^14, 2^15)
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(scales[i]));
  int exponent = 0;
  std::frexp(largest, &exponent);  // largest in [2^(exponent - 1), 2^exponent)
  return std::ldexp(1.0f, std::clamp(exponent - kExponentMax, -126, 126));
}

void encode_scales(const float* scales, int64_t count, float multiplier, Float16* halves) {
  float inverse = 1 / multiplier;  // exact: a power of two
  for (int64_t i = 0; i < count; ++i) halves[i] = from_float<Float16>(scales[i] * inverse);
}

}  // namespace banyan
