// Products with matrices of f32, such as the routers of mixtures of experts. A warp has Rows rows
// of Features outputs. A lane sums up every 32nd four of columns by fused multiply-add, in
// ascending order, then lanes are added as a tree: the same whatever the tile.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/gemm_tiles.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// Steps: how many fours of each row a lane loads before it waits for them. RowWarps: how many of a
// block's warps have rows of their own; the others share them, and have features of their own.
template <int Rows, int Features, int Steps, int RowWarps>
struct GemmF32 {
  static constexpr int kOutputs = Rows * Features;
  static constexpr int kTileRows = RowWarps * Rows;
  static constexpr int kTileFeatures = kBlockThreads / kWarp / RowWarps * Features;

  GemmArgs a;

  struct Sums {
    float of[Rows][Features];
  };
  struct PlusAll {
    BANYAN_HOST_DEVICE constexpr Sums operator()(Sums x, const Sums& y) const {
      BANYAN_UNROLL
      for (int r = 0; r < Rows; ++r) {
        BANYAN_UNROLL
        for (int f = 0; f < Features; ++f) x.of[r][f] += y.of[r][f];
      }
      return x;
    }
  };
  Shape shape() const {
    if (a.weights.begins != nullptr) return {};
    int64_t across = (a.n + kTileFeatures - 1) / kTileFeatures;
    return {.blocks = a.weights.count * ((a.x_rows + kTileRows - 1) / kTileRows) * across};
  }

  // Whether x of the next product may be rounded before this one.
  bool leaves(const PreparedOperand& next) const {
    if (a.weights.count != 1 || a.weights.begins != nullptr || a.segments != 1) return false;
    return next.left_by(floats(a.x, a.x_rows * a.x_stride),
                        floats(a.y, (a.x_rows - 1) * a.y_stride + a.n));
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    if (in_fours(a.k, a.x_stride, a.segment_stride, a.weights.weight_stride / 4, a.x,
                 a.weights.weight)) {
      for_gemm_tiles<kTileRows, kTileFeatures>(
          block, a, [&](const GemmTile& tile) { multiply<4>(block, tile); });
    } else {
      for_gemm_tiles<kTileRows, kTileFeatures>(
          block, a, [&](const GemmTile& tile) { multiply<1>(block, tile); });
    }
  }

  template <int N, class Block>
  BANYAN_DEVICE void multiply(Block& block, const GemmTile& tile) const {
    auto sums = block.reduce_warps(
        [&](int thread) {
          return lane_sums<N>(tile, first_row(thread), first_feature(thread), thread % kWarp);
        },
        PlusAll());
    block.each([&](int thread) {
      BANYAN_UNROLL
      for (int i = 0; i < kOutputs; ++i) {
        int64_t r = first_row(thread) + i / Features, f = first_feature(thread) + i % Features;
        if (i % kWarp != thread % kWarp || r >= tile.row_count || f >= tile.feature_count) continue;
        int64_t j = tile.feature + f;
        float y = sums[thread].of[i / Features][i % Features];
        a.y[(tile.row + r) * a.y_stride + tile.y_column + j] =
            tile.bias != nullptr ? y + tile.bias[j] : y;
      }
    });
  }

  // Of a thread's warp in the tile.
  BANYAN_HOST_DEVICE static constexpr int64_t first_row(int thread) {
    return thread / kWarp % RowWarps * Rows;
  }
  BANYAN_HOST_DEVICE static constexpr int64_t first_feature(int thread) {
    return thread / kWarp / RowWarps * Features;
  }

  // Of rows and features from these on of the tile. Those after its last ones are the last ones
  // again, and nobody takes their sums.
  template <int N>
  BANYAN_DEVICE Sums lane_sums(const GemmTile& tile, int64_t row, int64_t feature, int lane) const {
    const float *x[Rows], *w[Features];
    BANYAN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      int64_t of_y = tile.row + least(row + r, tile.row_count - 1);
      int64_t source = a.x_index != nullptr ? a.x_index[of_y] : of_y;
      x[r] = a.x + source * a.x_stride + tile.segment * a.segment_stride;
    }
    BANYAN_UNROLL
    for (int f = 0; f < Features; ++f) {
      int64_t of_tile = least(feature + f, tile.feature_count - 1);
      w[f] = static_cast<const float*>(tile.weight) + (tile.feature + of_tile) * a.k;
    }
    Sums sums = {};
    constexpr int64_t kStep = 4 * kWarp;
    int64_t c = 4 * lane;
    for (; c + (Steps - 1) * kStep + 3 < a.k; c += Steps * kStep) {
      add_fours<N, Steps>(x, w, c, c + Steps * kStep, sums);
    }
    for (; c < a.k; c += kStep) add_fours<N, 1>(x, w, c, a.k, sums);
    return sums;
  }

  // Weights are loaded first: they come from farther away.
  template <int N, int Count>
  BANYAN_DEVICE static void add_fours(const float* const (&x)[Rows],
                                      const float* const (&w)[Features], int64_t first, int64_t end,
                                      Sums& sums) {
    Four xs[Count][Rows], ws[Count][Features];
    BANYAN_UNROLL
    for (int step = 0; step < Count; ++step) {
      BANYAN_UNROLL
      for (int f = 0; f < Features; ++f) {
        ws[step][f] = load_four<N>(w[f], first + 4 * kWarp * step, end);
      }
    }
    BANYAN_UNROLL
    for (int step = 0; step < Count; ++step) {
      BANYAN_UNROLL
      for (int r = 0; r < Rows; ++r) {
        xs[step][r] = load_four<N>(x[r], first + 4 * kWarp * step, end);
      }
    }
    BANYAN_UNROLL
    for (int step = 0; step < Count; ++step) {
      BANYAN_UNROLL
      for (int r = 0; r < Rows; ++r) {
        BANYAN_UNROLL
        for (int f = 0; f < Features; ++f) {
          BANYAN_UNROLL
          for (int i = 0; i < 4; ++i) {
            sums.of[r][f] = fused(xs[step][r].at[i], ws[step][f].at[i], sums.of[r][f]);
          }
        }
      }
    }
  }
};

using FewRowsF32 = GemmF32<2, 1, 4, 1>;   // many warps
using SomeRowsF32 = GemmF32<8, 4, 1, 1>;  // fewer loads per product
using ManyRowsF32 = GemmF32<8, 8, 1, 2>;  // fewer still, also from L2, in fewer blocks
inline constexpr int64_t kSomeRows = 32, kManyRows = 256;

template <class Device>
void multiply_f32(const GemmArgs& args) {
  if (args.x_rows < kSomeRows) return Device::launch(args.launch.queue, FewRowsF32{args});
  if (args.x_rows < kManyRows) return Device::launch(args.launch.queue, SomeRowsF32{args});
  Device::launch(args.launch.queue, ManyRowsF32{args});
}

}  // namespace banyan::cuda
