// Rows of x in f16, which products with weights of f16 read. So that none of a row's values
// overflows, it is multiplied by a power of two first; a product is divided by it.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda {

// The power of two that brings `largest` to [2^14, 2^15), or as near as it and its inverse are
// normal numbers, and this inverse.
struct RowScale {
  float scale, inverse;
};
BANYAN_HOST_DEVICE constexpr RowScale row_scale_for(float largest) {
  constexpr uint32_t kTop = 127 + 14, kLast = 126;
  uint32_t field = std::bit_cast<uint32_t>(largest) >> 23;
  uint32_t up = kTop > field + kLast ? kLast : kTop - field;  // negative ones wrap
  return {std::bit_cast<float>((127 + up) << 23), std::bit_cast<float>((127 - up) << 23)};
}

// A block has a row of a segment.
struct ScaleRows {
  GemmArgs a;

  Shape shape() const { return {.blocks = a.x_rows * a.segments}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for (int64_t i = block.index(); i < rows_read(a) * a.segments; i += block.count()) {
      int64_t row = quotient(i, a.segments), segment = i - row * a.segments;
      const float* x = a.x + row * a.x_stride + segment * a.segment_stride;
      float largest = block.reduce(
          [&](int thread) {
            float most = 0;
            for (int64_t c = thread; c < a.k; c += Block::kThreads) {
              float size = magnitude(x[c]);
              most = size < kInfinity && size > most ? size : most;
            }
            return most;
          },
          Largest());
      RowScale scale = row_scale_for(largest);
      RoundedRows to = rounded_rows(a);
      for_each(block, to.column_tiles * (kTile / 8), [&](int64_t eight) {
        int64_t first = eight * 8;
        to.store_eight(row, segment, first,
                       rounded_eight<Float16>(x + first, a.k - first, scale.scale));
      });
      block.one([&] { row_factors(a)[i] = scale.inverse; });
    }
  }
};

}  // namespace banyan::cuda
