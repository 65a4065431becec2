// Products with matrices of every format but f32 (gemm_f32.h), with the bits of the portable
// kernels: a thread sums up its outputs over k in ascending order.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/gemm_tiles.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// Tiles of kRows rows and kFeatures outputs; a thread has kPerThread rows of one output. Columns
// come through shared memory, kColumns at a time.
template <Format F>
struct Gemm {
  static constexpr int kRows = 16, kFeatures = 64, kColumns = 32, kPerThread = 8;
  static_assert(kBlockThreads == kRows / kPerThread * kFeatures);
  using X = Element<F>;

  GemmArgs a;

  struct Shared {
    X x[kRows][kColumns];
    X w[kFeatures][kColumns + 1];  // a column of it touches every bank
  };
  struct Sums {
    X group[kPerThread];
    float y[kPerThread];
  };
  Shape shape() const { return {.shared_bytes = sizeof(Shared)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_gemm_tiles<kRows, kFeatures>(block, a,
                                     [&](const GemmTile& tile) { multiply(block, tile); });
  }

  BANYAN_DEVICE int64_t source(int64_t row) const {
    return a.x_index != nullptr ? a.x_index[row] : row;
  }
  BANYAN_DEVICE X x_at(const GemmTile& tile, int64_t row, int64_t c) const {
    if constexpr (has_integers(F)) return *quantised_rows(a).code(source(row), tile.segment, c);
    return static_cast<X>(a.x[source(row) * a.x_stride + tile.segment * a.segment_stride + c]);
  }

  template <class Block>
  BANYAN_DEVICE void multiply(Block& block, const GemmTile& tile) const {
    Packed<F> w(tile.weight, a.n, a.k, a.group);
    typename Block::template PerThread<Sums> sums;
    for_outputs(block, tile, sums, [&](Sums& s, int r, int64_t, int64_t) { s.y[r] = 0; });
    for (int64_t g = 0; g < w.groups(); ++g) {
      for_outputs(block, tile, sums, [&](Sums& s, int r, int64_t, int64_t) { s.group[r] = 0; });
      for (int64_t c = g * a.group; c < (g + 1) * a.group; c += kColumns) {
        add_columns(block, tile, w, g, c, least(kColumns, (g + 1) * a.group - c), sums);
      }
      for_outputs(block, tile, sums, [&](Sums& s, int r, int64_t row, int64_t j) {
        s.y[r] = with_group(s.y[r], s.group[r], tile, w, row, j, g);
      });
    }
    for_outputs(block, tile, sums, [&](Sums& s, int r, int64_t row, int64_t j) {
      a.y[row * a.y_stride + tile.y_column + j] =
          tile.bias != nullptr ? s.y[r] + tile.bias[j] : s.y[r];
    });
  }

  // Calls body(sums, r, row, output) for each output of each thread.
  template <class Block, class AllSums, class Body>
  BANYAN_DEVICE void for_outputs(Block& block, const GemmTile& tile, AllSums& sums,
                                 const Body& body) const {
    block.each([&](int thread) {
      int64_t j = thread % kFeatures, first = thread / kFeatures * kPerThread;
      if (j >= tile.feature_count) return;
      BANYAN_UNROLL
      for (int r = 0; r < kPerThread; ++r) {
        if (first + r < tile.row_count) {
          body(sums[thread], r, tile.row + first + r, tile.feature + j);
        }
      }
    });
  }

  template <class Block, class AllSums>
  BANYAN_DEVICE void add_columns(Block& block, const GemmTile& tile, const Packed<F>& w, int64_t g,
                                 int64_t column, int64_t columns, AllSums& sums) const {
    Shared& shared = *block.template shared<Shared>();
    block.each([&](int thread) {
      for (int64_t i = thread; i < tile.row_count * kColumns; i += kBlockThreads) {
        int64_t r = i / kColumns, c = i % kColumns;
        if (c < columns) shared.x[r][c] = x_at(tile, tile.row + r, column + c);
      }
      for (int64_t i = thread; i < tile.feature_count * kColumns; i += kBlockThreads) {
        int64_t j = i / kColumns, c = i % kColumns;
        if (c < columns) shared.w[j][c] = w.at(tile.feature + j, column + c, g);
      }
    });
    block.each([&](int thread) {
      int64_t j = thread % kFeatures, first = thread / kFeatures * kPerThread;
      if (j >= tile.feature_count) return;
      auto& s = sums[thread];
      for (int64_t c = 0; c < columns; ++c) {
        X weight = shared.w[j][c];
        BANYAN_UNROLL
        for (int r = 0; r < kPerThread; ++r) {
          if (first + r < tile.row_count) s.group[r] += shared.x[first + r][c] * weight;
        }
      }
    });
  }

  BANYAN_DEVICE float with_group(float y, X sum, const GemmTile& tile, const Packed<F>& w,
                                 int64_t row, int64_t j, int64_t g) const {
    if constexpr (has_integers(F)) {
      float step = *quantised_rows(a).step(source(row), tile.segment, g);
      return fused(static_cast<float>(sum), step * w.scale(j, g), y);
    } else if constexpr (has_scales(F)) {
      return fused(sum, w.scale(j, g), y);
    } else {
      return sum;
    }
  }
};

template <Format F>
struct Gather {
  GatherArgs a;
  Shape shape() const { return {.blocks = blocks_for(a.rows * a.k)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t group = has_scales(F) ? a.group : a.k;
    Packed<F> w(a.weight, a.n, a.k, group);
    for_all(block, a.rows * a.k, [&](int64_t i) {
      int64_t r = quotient(i, a.k), c = i - r * a.k, j = a.ids[r], g = quotient(c, group);
      auto value = static_cast<float>(w.at(j, c, g));
      a.y[i] = has_scales(F) ? value * w.scale(j, g) : value;
    });
  }
};

}  // namespace banyan::cuda
