// int8: symmetric, scaled by the largest magnitude of a group.
#include "quant/codes.h"
#include "quant/group_loop.h"

namespace banyan {

void quantise_int8(const float* x, const RowsShape& shape, const QuantisedRows& to) {
  quant::for_groups(x, shape, to, [&](const float* from, uint8_t* codes, float& scale) {
    float largest = quant::largest_magnitude(from, shape.group);
    bool zeros = largest < quant::kMagnitudeMin;
    scale = zeros ? 0 : largest / 127;
    float inverse = zeros ? 0 : 127 / largest;
    for (int64_t i = 0; i < shape.group; ++i) {
      float code = std::clamp(quant::nearest(from[i] * inverse), -127.0f, 127.0f);
      codes[i] = static_cast<uint8_t>(static_cast<int32_t>(code));
    }
  });
}

void dequantise_int8(const QuantisedRows& from, const RowsShape& shape, float* x) {
  quant::dequantise(from, shape, x, [](uint8_t code, int64_t) {
    return static_cast<float>(static_cast<int8_t>(code));
  });
}

}  // namespace banyan
