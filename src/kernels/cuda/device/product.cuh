// What kernels of products share: the rows that they read, and their outputs.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// A warp, for for_output_tiles.
struct Warp {
  template <class Value>
  __device__ int32_t sums_to(const Value& value) const {
    int lane = static_cast<int>(threadIdx.x % kWarp);
    int32_t sum = value(lane);
#pragma unroll
    for (int distance = 1; distance < kWarp; distance *= 2) {
      int32_t before = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += before;
    }
    return sum;
  }
  __device__ int32_t at(int32_t sums, int lane) const {
    return __shfl_sync(0xffffffffu, sums, lane);
  }
};

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

// Output `feature` of the tile's row `row`, if they exist.
__device__ inline void put_output(const GemmArgs& a, const OutputTile& tile, int64_t row,
                                  int64_t feature, float sum) {
  int64_t j = tile.feature + feature;
  if (row >= tile.row_count || j >= a.n) return;
  if (a.bias != nullptr) sum = __fadd_rn(sum, a.bias[tile.matrix * a.bias_stride + j]);
  a.y[(tile.row + row) * a.y_stride + tile.matrix * a.weights.y_column_stride + j] = sum;
}

}  // namespace banyan::cuda::device
