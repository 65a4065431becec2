// The tiles of a product: rows and outputs that a block computes together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

struct GemmTile {
  const void* weight;
  const float* bias;
  int64_t row, row_count, segment, y_column, feature, feature_count;
};

// Calls body(tile) for tiles of Rows rows and Features outputs of all matrices: blocks share them.
template <int Rows, int Features, class Block, class Body>
BANYAN_DEVICE void for_gemm_tiles(Block& block, const GemmArgs& a, const Body& body) {
  const GemmGroup& w = a.weights;
  int64_t across = (a.n + Features - 1) / Features, item = 0;  // the matrix's first tile
  for (int64_t i = 0; i < w.count; ++i) {
    int64_t begin = w.begins != nullptr ? w.begins[i] : 0;
    int64_t end = w.begins != nullptr ? w.begins[i + 1] : a.x_rows;
    int64_t tiles = (end - begin + Rows - 1) / Rows * across;
    int64_t first =
        remainder(block.index() + block.count() - remainder(item, block.count()), block.count());
    for (int64_t t = first; t < tiles; t += block.count()) {
      int64_t down = quotient(t, across), feature = (t - down * across) * Features;
      int64_t row = begin + down * Rows;
      body(GemmTile{static_cast<const std::byte*>(w.weight) + i * w.weight_stride,
                    a.bias != nullptr ? a.bias + i * a.bias_stride : nullptr, row,
                    least(Rows, end - row), i * w.segment_step, i * w.y_column_stride, feature,
                    least(Features, a.n - feature)});
    }
    item += tiles;
  }
}

}  // namespace banyan::cuda
