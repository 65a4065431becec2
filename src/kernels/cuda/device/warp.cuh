// A warp, for kernels/cuda/lane_sums.h.
#pragma once

#include <cstdint>

#include "kernels/cuda/block.h"

namespace banyan::cuda::device {

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
  // The second shuffle tells the compiler that all lanes have the same.
  __device__ int32_t at(int32_t sums, int lane) const {
    return __shfl_sync(0xffffffffu, __shfl_sync(0xffffffffu, sums, lane), 0);
  }
};

}  // namespace banyan::cuda::device
