// mxfp4: e2m1 numbers (0, 0.5, 1, 1.5, 2, 3, 4, 6 with a sign) with one power-of-two scale per 32
// numbers: OCP Microscaling Formats 1.0, section 5.
//
// The specification uses the exponent of the group's largest magnitude minus 2, which clips values
// between 6 and 8. One exponent more avoids that at the cost of a bit of the small numbers. The
// choice with the smaller squared error wins.
#include <bit>

#include "quant/codes.h"
#include "quant/group_loop.h"

namespace banyan {
namespace {

constexpr float kValues[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                               -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Rounds to nearest, ties to the even code.
uint8_t e2m1_of(float x) {
  float m = std::fabs(x);
  int code = (m > 0.25f) + (m >= 0.75f) + (m > 1.25f) + (m >= 1.75f) + (m > 2.5f) + (m >= 3.5f) +
             (m > 5.0f);
  return static_cast<uint8_t>(code | (x < 0 ? 8 : 0));
}

float squared_error(const float* x, int64_t count, float scale) {
  float inverse = 1 / scale, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    float error = x[i] * inverse - kValues[e2m1_of(x[i] * inverse)];
    sum += error * error;
  }
  return sum * scale * scale;
}

float best_power(const float* x, int64_t count) {
  float largest = quant::largest_magnitude(x, count);
  if (largest < quant::kMagnitudeMin) return 0x1p-127f;
  int exponent = std::ilogb(largest) - 2;
  float clipping = std::ldexp(1.0f, exponent), fitting = std::ldexp(1.0f, exponent + 1);
  return squared_error(x, count, clipping) < squared_error(x, count, fitting) ? clipping : fitting;
}

}  // namespace

void quantise_mxfp4(const float* x, const RowsShape& shape, const QuantisedRows& to) {
  quant::for_groups(x, shape, to, [&](const float* from, uint8_t* codes, float& scale) {
    scale = best_power(from, shape.group);
    bool zeros = scale == 0x1p-127f;
    float inverse = zeros ? 0 : 1 / scale;
    for (int64_t i = 0; i < shape.group; ++i) codes[i] = e2m1_of(from[i] * inverse);
  });
}

void dequantise_mxfp4(const QuantisedRows& from, const RowsShape& shape, float* x) {
  quant::dequantise(from, shape, x, [](uint8_t code, int64_t) { return kValues[code & 15]; });
}

float e8m0_scale(uint8_t exponent) {
  return std::ldexp(1.0f, int{exponent} - 127);
}

}  // namespace banyan
