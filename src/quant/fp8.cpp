// fp8: e4m3fn (bias 7, largest 448, no infinity) with one scale for each block of 128 rows and
// columns, as DeepSeek-V3's checkpoints have (arXiv:2412.19437, section 3.3).
#include <bit>

#include "quant/codes.h"
#include "quant/group_loop.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr float kLargest = 448;

// As an f32 with the exponent of e4m3 the number is 2^-120 of itself, subnormals included.
float value_of_e4m3(uint8_t code) {
  uint32_t bits = (uint32_t{code} & 0x80u) << 24 | (uint32_t{code} & 0x7fu) << 20;
  return std::bit_cast<float>(bits) * 0x1p120f;
}

// Quantises one block: `columns` of each of `rows` rows, which are `stride` apart.
void quantise_block(const float* x, int64_t rows, int64_t columns, int64_t stride, uint8_t* codes,
                    float* scale) {
  float largest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    largest = std::max(largest, quant::largest_magnitude(x + r * stride, columns));
  }
  bool zeros = largest < quant::kMagnitudeMin;
  *scale = zeros ? 0 : largest / kLargest;
  float inverse = zeros ? 0 : kLargest / largest;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      codes[r * stride + c] = from_float<Float8E4M3>(x[r * stride + c] * inverse).bits;
    }
  }
}

}  // namespace

void quantise_fp8(const float* x, const RowsShape& shape, const QuantisedRows& to) {
  for (int64_t row = 0; row < shape.rows; row += kFp8Block) {
    int64_t rows = std::min(kFp8Block, shape.rows - row);
    for (int64_t column = 0; column < shape.columns; column += kFp8Block) {
      int64_t columns = std::min(kFp8Block, shape.columns - column);
      float scale = 0;
      int64_t first = row * shape.columns + column;
      quantise_block(x + first, rows, columns, shape.columns, to.codes + first, &scale);
      for (int64_t r = row; r < row + rows; ++r) {
        float* scales = to.scales + r * shape.groups();
        std::fill(scales + column / shape.group,
                  scales + (column + columns + shape.group - 1) / shape.group, scale);
      }
    }
  }
}

void dequantise_fp8(const QuantisedRows& from, const RowsShape& shape, float* x) {
  quant::dequantise(from, shape, x, [](uint8_t code, int64_t) { return value_of_e4m3(code); });
}

}  // namespace banyan
