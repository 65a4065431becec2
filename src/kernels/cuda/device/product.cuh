// What kernels of products share: their launch after the kernel that rounds x, the rows that they
// read, and their outputs.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// By the warp that fetches: the rows of x of a tile of kRows. Rows past the last one repeat it.
template <int kRows>
__device__ void find_sources(const GemmArgs& a, const OutputTile& tile, int* sources) {
  __syncwarp();
  for (int r = static_cast<int>(threadIdx.x % kWarp); r < kRows; r += kWarp) {
    sources[r] = static_cast<int>(source_row(a, tile.row + least(r, tile.row_count - 1)));
  }
  __syncwarp();
}

// Output `feature` of the tile's row `row`, if they exist.
__device__ inline void put_output(const GemmArgs& a, const OutputTile& tile, int64_t row,
                                  int64_t feature, float sum) {
  int64_t j = tile.feature + feature;
  if (row >= tile.row_count || j >= a.n) return;
  if (a.bias != nullptr) sum = __fadd_rn(sum, a.bias[tile.matrix * a.bias_stride + j]);
  a.y[(tile.row + row) * a.y_stride + tile.matrix * a.weights.y_column_stride + j] = sum;
}

// Launches a kernel that may begin while the one before it, which rounds x, is running.
template <class G>
void launch_after_rounding(Queue& queue, void (*function)(G), const G& kernel, int64_t blocks,
                           int cluster) {
  BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(G::kSharedBytes)));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = static_cast<unsigned>(blocks);
  config.blockDim = G::kThreads;
  config.dynamicSmemBytes = G::kSharedBytes;
  config.stream = queue.stream();
  config.attrs = attributes;
  config.numAttrs = 2;
  BANYAN_CHECK_CUDA(cudaLaunchKernelEx(&config, function, kernel));
}

}  // namespace banyan::cuda::device
