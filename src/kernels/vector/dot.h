// The register tile shared by GEMM and attention scores.
//
// A sum over k is split into kLanes lanes: lane l adds elements k = l modulo kLanes in ascending
// order, and a fixed tree adds the lanes. So a sum depends neither on the number of rows in the
// tile nor on its place in it.
#pragma once

#include <cstdint>

#include "kernels/vector/vec_math.h"

namespace banyan::simd {

constexpr int kTileOutputs = 4;

// Calls body(first, rows) for groups of at most kRows queries, of nearly equal size, since a tile
// with few rows reuses little of what it loads.
template <int kRows, class Body>
inline void for_query_groups(int64_t count, const Body& body) {
  int64_t groups = (count + kRows - 1) / kRows;
  for (int64_t g = 0; g < groups; ++g) {
    int64_t first = count * g / groups;
    body(first, count * (g + 1) / groups - first);
  }
}

// sums[r][j] = sum over c < k of x[r][c] * w[j][c], for r < R.
template <class V, int R, class W>
inline void dot_tile(const float* const* x, const W* const* w, int64_t k,
                     float (*sums)[kTileOutputs]) {
  typename V::F acc[R][kTileOutputs];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileOutputs; ++j) acc[r][j] = V::set(0);
  }
  // The shorter side of the tile stays in registers; the longer one is streamed.
  auto step = [&](int64_t c, auto load) {
    constexpr bool kHoldWeights = R > kTileOutputs;
    typename V::F held[kHoldWeights ? kTileOutputs : R];
    if constexpr (kHoldWeights) {
#pragma GCC unroll 4
      for (int j = 0; j < kTileOutputs; ++j) held[j] = load(w[j] + c);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        auto activation = load(x[r] + c);
#pragma GCC unroll 4
        for (int j = 0; j < kTileOutputs; ++j) acc[r][j] = V::fma(activation, held[j], acc[r][j]);
      }
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) held[r] = load(x[r] + c);
#pragma GCC unroll 4
      for (int j = 0; j < kTileOutputs; ++j) {
        auto weight = load(w[j] + c);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[r][j] = V::fma(held[r], weight, acc[r][j]);
      }
    }
  };
  int64_t whole = k / V::kLanes * V::kLanes;
  for (int64_t c = 0; c < whole; c += V::kLanes) step(c, [](auto* p) { return V::load(p); });
  if (whole < k) step(whole, [&](auto* p) { return V::load_first(p, k - whole); });
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) V::sum4(acc[r][0], acc[r][1], acc[r][2], acc[r][3], sums[r]);
}

// The same for `rows` in [1, kTileRows].
template <class V, class W, int R = V::kTileRows>
inline void dot_tile_of(int64_t rows, const float* const* x, const W* const* w, int64_t k,
                        float (*sums)[kTileOutputs]) {
  if constexpr (R > 1) {
    if (rows < R) return dot_tile_of<V, W, R - 1>(rows, x, w, k, sums);
  }
  dot_tile<V, R, W>(x, w, k, sums);
}

}  // namespace banyan::simd
