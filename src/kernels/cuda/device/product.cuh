// What kernels of products share: the rows that they read, and their outputs.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/device/wgmma.cuh"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// The threads of the warpgroup that fetches meet.
__device__ inline void sync_fetchers() {
  asm volatile("bar.sync 2, %0;" ::"n"(kWarpgroup) : "memory");
}

// By them: the rows of x of a tile of kRows. Rows past the last one repeat it.
template <int kRows>
__device__ void find_sources(const GemmArgs& a, const OutputTile& tile, int thread, int* sources) {
  sync_fetchers();
  for (int r = thread; r < kRows; r += kWarpgroup) {
    sources[r] = static_cast<int>(source_row(a, tile.row + least(r, tile.row_count - 1)));
  }
  sync_fetchers();
}

// Output `feature` of the tile's row `row`, if they exist. kScaled: the rows of x have factors.
template <bool kScaled>
__device__ void put_output(const GemmArgs& a, const OutputTile& tile, int64_t row, int64_t feature,
                           float sum) {
  int64_t j = tile.feature + feature;
  if (row >= tile.row_count || j >= a.n) return;
  if constexpr (kScaled) sum = __fmul_rn(sum, row_factor(a, tile.row + row, tile.matrix));
  if (a.bias != nullptr) sum = __fadd_rn(sum, a.bias[tile.matrix * a.bias_stride + j]);
  a.y[(tile.row + row) * a.y_stride + tile.matrix * a.weights.y_column_stride + j] = sum;
}

// The accumulators of a thread: outputs of features `first` to `first` + 63 of the tile, where
// they exist. A thread has two of the features, in a quarter of the rows.
template <bool kScaled, int count>
__device__ void put_outputs(const GemmArgs& a, const OutputTile& tile, int first,
                            const float (&sums)[count]) {
  int64_t j = tile.feature + first + accumulator_row(0);
  bool exists[2] = {j < a.n, j + 8 < a.n}, biased = a.bias != nullptr;
  float bias[2] = {};
  const float* biases = a.bias + tile.matrix * a.bias_stride + j;
#pragma unroll
  for (int f = 0; f < 2; ++f) {
    if (biased && exists[f]) bias[f] = biases[8 * f];
  }
  int own = accumulator_column(0);  // row
  int rows = static_cast<int>(tile.row_count) - own;
  float* y = a.y + (tile.row + own) * a.y_stride + tile.matrix * a.weights.y_column_stride + j;
#pragma unroll
  for (int i = 0; i < count; i += 4) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float factor = 1;
      if constexpr (kScaled) {
        if (i * 2 + r < rows) factor = row_factor(a, tile.row + own + i * 2 + r, tile.matrix);
      }
#pragma unroll
      for (int f = 0; f < 2; ++f) {
        float sum = sums[i + 2 * f + r];
        if constexpr (kScaled) sum = __fmul_rn(sum, factor);
        if (biased) sum = __fadd_rn(sum, bias[f]);
        if (i * 2 + r < rows && exists[f]) y[8 * f] = sum;
      }
      y += r == 0 ? a.y_stride : 7 * a.y_stride;
    }
  }
}

// The output of a gate and its up, which are features `gate` and `gate` + kGateRows of a tile.
template <class G, bool kScaled>
class GatedOutputs {
 public:
  __device__ GatedOutputs(const G& g, const OutputTile& tile, int gate)
      : g_(g), tile_(tile), column_(gate_of(tile.feature + gate)) {
    if (g.a.bias == nullptr) return;
    const float* bias = g.a.bias + tile.matrix * g.a.bias_stride + column_;
    biases_[0] = bias[0], biases_[1] = bias[g.activation.a.dim];
  }

  // Of the tile's row `row`, which exists.
  __device__ void put(int row, float gate, float up) const {
    const SiluMul& activation = g_.activation;
    int64_t at = tile_.row + row;
    if constexpr (kScaled) {
      float factor = row_factor(g_.a, at, tile_.matrix);
      gate = __fmul_rn(gate, factor), up = __fmul_rn(up, factor);
    }
    if (g_.a.bias != nullptr) gate = __fadd_rn(gate, biases_[0]), up = __fadd_rn(up, biases_[1]);
    float y = activation.glu(gate, up);
    activation.a.y[at * activation.a.dim + column_] = y;
    if (activation.rounded.workspace != nullptr) activation.rounded.store_one(at, column_, y);
  }

 private:
  const G& g_;
  const OutputTile& tile_;
  int64_t column_;  // of y
  float biases_[2] = {};
};

// put_outputs() of gates and ups.
template <bool kScaled, class G, int count>
__device__ void put_activated(const G& g, const OutputTile& tile, const float (&sums)[count]) {
  GatedOutputs<G, kScaled> outputs(g, tile, accumulator_row(0));
  int own = accumulator_column(0);  // row
#pragma unroll
  for (int i = 0; i < count; i += 4) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      int row = own + i * 2 + r;
      if (row < tile.row_count) outputs.put(row, sums[i + r], sums[i + 2 + r]);
    }
  }
}

}  // namespace banyan::cuda::device
