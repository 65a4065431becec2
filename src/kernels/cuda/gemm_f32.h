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

// Steps: how many fours of each row a lane loads before it waits for them.
template <int Rows, int Features, int Steps>
struct GemmF32 {
  static constexpr int kWarps = kBlockThreads / kWarp, kOutputs = Rows * Features;

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
    int64_t across = (a.n + kWarps * Features - 1) / (kWarps * Features);
    return {.blocks = a.weights.count * ((a.x_rows + Rows - 1) / Rows) * across};
  }

  // Whether x of the next product may be rounded before this one.
  bool leaves(const RoundedOperand& next) const {
    if (a.weights.count != 1 || a.weights.begins != nullptr || a.segments != 1) return false;
    return next.left_by(floats(a.x, a.x_rows * a.x_stride),
                        floats(a.y, (a.x_rows - 1) * a.y_stride + a.n));
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    if (in_fours(a.k, a.x_stride, a.segment_stride, a.weights.weight_stride / 4, a.x,
                 a.weights.weight)) {
      for_gemm_tiles<Rows, kWarps * Features>(
          block, a, [&](const GemmTile& tile) { multiply<4>(block, tile); });
    } else {
      for_gemm_tiles<Rows, kWarps * Features>(
          block, a, [&](const GemmTile& tile) { multiply<1>(block, tile); });
    }
  }

  template <int N, class Block>
  BANYAN_DEVICE void multiply(Block& block, const GemmTile& tile) const {
    auto sums = block.reduce_warps(
        [&](int thread) { return lane_sums<N>(tile, thread / kWarp * Features, thread % kWarp); },
        PlusAll());
    block.each([&](int thread) {
      int64_t first = thread / kWarp * Features;
      BANYAN_UNROLL
      for (int i = 0; i < kOutputs; ++i) {
        int64_t r = i / Features, f = first + i % Features;
        if (i % kWarp != thread % kWarp || r >= tile.row_count || f >= tile.feature_count) continue;
        int64_t j = tile.feature + f;
        float y = sums[thread].of[i / Features][i % Features];
        a.y[(tile.row + r) * a.y_stride + tile.y_column + j] =
            tile.bias != nullptr ? y + tile.bias[j] : y;
      }
    });
  }

  // Of features from `first` on of the tile. What lies behind its rows and features is its last one
  // again, and nobody takes its sums.
  template <int N>
  BANYAN_DEVICE Sums lane_sums(const GemmTile& tile, int64_t first, int lane) const {
    const float *x[Rows], *w[Features];
    BANYAN_UNROLL
    for (int r = 0; r < Rows; ++r) {
      int64_t row = tile.row + least(r, tile.row_count - 1);
      int64_t source = a.x_index != nullptr ? a.x_index[row] : row;
      x[r] = a.x + source * a.x_stride + tile.segment * a.segment_stride;
    }
    BANYAN_UNROLL
    for (int f = 0; f < Features; ++f) {
      int64_t feature = tile.feature + least(first + f, tile.feature_count - 1);
      w[f] = static_cast<const float*>(tile.weight) + feature * a.k;
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

using FewRowsF32 = GemmF32<2, 1, 4>;   // many warps
using ManyRowsF32 = GemmF32<8, 4, 1>;  // fewer loads per product
inline constexpr int64_t kManyRows = 32;

template <class Device>
void multiply_f32(const GemmArgs& args) {
  if (args.x_rows < kManyRows) return Device::launch(args.launch.queue, FewRowsF32{args});
  Device::launch(args.launch.queue, ManyRowsF32{args});
}

}  // namespace banyan::cuda
