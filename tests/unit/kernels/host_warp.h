// The lanes of a warp, one after another (kernels/cuda/lane_sums.h).
#pragma once

#include <array>
#include <cstdint>

#include "kernels/cuda/block.h"

namespace banyan::cuda {

struct HostWarp {
  template <class Value>
  std::array<int32_t, kWarp> sums_to(const Value& value) const {
    std::array<int32_t, kWarp> sums;
    int32_t sum = 0;
    for (int lane = 0; lane < kWarp; ++lane) sums[static_cast<size_t>(lane)] = sum += value(lane);
    return sums;
  }
  int32_t at(const std::array<int32_t, kWarp>& sums, int lane) const {
    return sums[static_cast<size_t>(lane)];
  }
};

}  // namespace banyan::cuda
