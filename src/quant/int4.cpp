// int4: codes -8..7 stored as 0..15, with the scale of least squared error for each group.
//
// For fixed codes q the best scale is sum(x q) / sum(q q), with error sum(x x) - sum(x q)^2 / sum(q
// q). The best codes therefore maximize sum(x q)^2 / sum(q q). Candidates round x by a ladder of
// scales around those that just fit the group, in both orientations (largest value at -8 or at 7).
// The best candidate is refined by alternating least squares and rounding.
#include <cstring>

#include "quant/codes.h"
#include "quant/group_loop.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int kRefinements = 3;

struct Fit {
  float product = 0;  // sum of x * code
  float square = 0;   // sum of code * code

  float score() const { return square > 0 ? product * product / square : 0; }
  float scale() const { return product / square; }
};

// Code of one value; T is a float or a vector of floats.
template <class T>
T code_of(T x, float inverse) {
  T code = x * inverse;
  code = code < -8 ? T{} - 8 : code;
  code = code > 7 ? T{} + 7 : code;
  return quant::nearest(code);
}

Fit fit(const float* x, int64_t count, float inverse) {
  constexpr int64_t kLanes = 4;  // available on every x86-64 and AArch64
  using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
  Lanes products = {}, squares = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes values;
    std::memcpy(&values, x + i, sizeof(values));
    Lanes codes = code_of(values, inverse);
    products += values * codes;
    squares += codes * codes;
  }
  for (; i < count; ++i) {
    float code = code_of(x[i], inverse);
    products[0] += x[i] * code;
    squares[0] += code * code;
  }
  Fit sum;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    sum.product += products[lane];
    sum.square += squares[lane];
  }
  return sum;
}

// The value of largest magnitude, with its sign.
float largest_value(const float* x, int64_t count) {
  auto [low, high] = std::minmax_element(x, x + count);
  return -*low > *high ? *low : *high;
}

// The scale for rounding x.
float best_scale(const float* x, int64_t count) {
  float largest = largest_value(x, count);
  if (std::fabs(largest) < quant::kMagnitudeMin) return 0;
  Fit best;
  auto consider = [&](const Fit& found) {
    if (found.score() > best.score()) best = found;
  };
  for (int step = -4; step <= 6; ++step) {
    consider(fit(x, count, -(8 + 0.25f * step) / largest));
  }
  for (int step = -3; step <= 4; ++step) {
    consider(fit(x, count, (7.4f + 0.25f * step) / largest));
  }
  for (int i = 0; i < kRefinements && best.product != 0; ++i) {
    consider(fit(x, count, 1 / best.scale()));
  }
  float scale = best.square > 0 ? to_float(from_float<BFloat16>(best.scale())) : 0;
  return std::fabs(scale) < quant::kMagnitudeMin ? 0 : scale;
}

}  // namespace

void quantise_int4(const float* x, const RowsShape& shape, const QuantisedRows& to) {
  quant::for_groups(x, shape, to, [&](const float* from, uint8_t* codes, float& scale) {
    scale = best_scale(from, shape.group);
    float inverse = scale == 0 ? 0 : 1 / scale;
    for (int64_t i = 0; i < shape.group; ++i) {
      codes[i] = static_cast<uint8_t>(static_cast<int32_t>(code_of(from[i], inverse)) + 8);
    }
  });
}

void dequantise_int4(const QuantisedRows& from, const RowsShape& shape, float* x) {
  quant::dequantise(from, shape, x,
                    [](uint8_t code, int64_t) { return static_cast<float>(int{code} - 8); });
}

void dequantise_uint4(const QuantisedRows& from, const RowsShape& shape, float* x) {
  quant::dequantise(from, shape, x, [&](uint8_t code, int64_t group) {
    return static_cast<float>(int{code} - int{from.zeros[group]});
  });
}

}  // namespace banyan
