// Work of many items, of which the lanes of a warp look at one each. Warp has
//   sums_to(value)  for each lane the sum of value(lane) up to it
//   at(sums, lane)  that of a lane
#pragma once

#include "kernels/cuda/block.h"

namespace banyan::cuda {

template <class Warp, class Sums>
BANYAN_DEVICE int32_t last_sum(const Warp& warp, const Sums& sums) {
  return warp.at(sums, kWarp - 1);
}
// The sum before the lane's own value.
template <class Warp, class Sums>
BANYAN_DEVICE int32_t sum_before(const Warp& warp, const Sums& sums, int lane) {
  return lane > 0 ? warp.at(sums, lane - 1) : 0;
}
// The first lane whose sum is above `value`, which the last one's is.
template <class Warp, class Sums>
BANYAN_DEVICE int lane_above(const Warp& warp, const Sums& sums, int64_t value) {
  int lane = 0;
  for (int step = kWarp / 2; step > 0; step /= 2) {
    if (warp.at(sums, lane + step - 1) <= value) lane += step;
  }
  return lane;
}

}  // namespace banyan::cuda
