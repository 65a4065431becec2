// Loops shared by the quantisers.
//
// Sums run in kLanes fixed lanes, so they vectorise and are bit-identical for every compiler and
// instruction set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quant/codes.h"

namespace banyan::quant {

inline constexpr int64_t kLanes = 8;
// Groups below this magnitude become zeros, since the inverse of their scale would overflow.
inline constexpr float kMagnitudeMin = 1e-30f;

// Rounds x, |x| < 2^22, to the nearest even integer without a library call in the loop.
template <class T>
T nearest(T x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23, whose ulp is 1
  return (x + kShift) - kShift;
}

inline float largest_magnitude(const float* x, int64_t count) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = std::max(lanes[lane], std::fabs(x[i + lane]));
    }
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], std::fabs(x[i]));
  return *std::max_element(lanes, lanes + kLanes);
}

// Calls body(x of the group, codes of the group, its scale) for every group.
template <class Body>
void for_groups(const float* x, const RowsShape& shape, const QuantisedRows& to, const Body& body) {
  for (int64_t g = 0; g < shape.rows * shape.groups(); ++g) {
    body(x + g * shape.group, to.codes + g * shape.group, to.scales[g]);
  }
}

// x = (integer_of(code) - zero) * scale.
template <class IntegerOf>
void dequantise(const QuantisedRows& from, const RowsShape& shape, float* x,
                const IntegerOf& value_of) {
  for (int64_t g = 0; g < shape.rows * shape.groups(); ++g) {
    const uint8_t* codes = from.codes + g * shape.group;
    for (int64_t i = 0; i < shape.group; ++i) {
      x[g * shape.group + i] = value_of(codes[i], g) * from.scales[g];
    }
  }
}

}  // namespace banyan::quant
