// Small matrix products on data in cache, for kernels with recurrent state.
#pragma once

#include <cstdint>

#include "kernels/vector/vec_math.h"

namespace banyan::simd {

// c[r, :] = kept[r] c[r, :] + sum over j < depth, ascending, of a[r, j] b[j, :]. A row's result is
// independent of other rows.
struct Product {
  const float* a;  // [rows, depth]
  int64_t a_row_stride, a_column_stride;
  const float* b;  // [depth, columns]
  int64_t b_row_stride;
  float* c;  // [rows, columns]
  int64_t c_row_stride;
  const float* kept;  // [rows]; null: 0 for all
  int64_t rows, depth, columns;
};

// N vectors of consecutive columns. Only a single vector may be partial.
template <class V, int N>
struct Panel {
  typename V::F part[N];

  static Panel zero() {
    Panel panel;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) panel.part[n] = V::set(0);
    return panel;
  }
  static Panel load(const float* x, int64_t lanes) {
    if constexpr (N == 1) return {load_up_to<V>(x, lanes)};
    Panel panel;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) panel.part[n] = V::load(x + n * V::kLanes);
    return panel;
  }
  void store(float* x, int64_t lanes) const {
    if constexpr (N == 1) return store_up_to<V>(x, lanes, part[0]);
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) V::store(x + n * V::kLanes, part[n]);
  }
  void scale(float factor) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) part[n] = V::mul(part[n], V::set(factor));
  }
  void add(float factor, const Panel& x) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) part[n] = V::fma(V::set(factor), x.part[n], part[n]);
  }
};

// Calls body<N>(column, lanes) for panels of N vectors of columns.
template <class V, class Body>
static inline void for_panels(int64_t columns, const Body& body) {
  constexpr int kVectors = 4;
  int64_t column = 0;
  for (; column + kVectors * V::kLanes <= columns; column += kVectors * V::kLanes) {
    body.template operator()<kVectors>(column, V::kLanes);
  }
  for (; column < columns; column += V::kLanes) {
    int64_t left = columns - column;
    body.template operator()<1>(column, left < V::kLanes ? left : V::kLanes);
  }
}

// R rows, starting at `row`, of the panel at `column`.
template <class V, int R, int N>
inline void product_tile(const Product& p, int64_t row, int64_t column, int64_t lanes) {
  Panel<V, N> sums[R];
  const float* a[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    sums[r] = Panel<V, N>::zero();
    a[r] = p.a + (row + r) * p.a_row_stride;
  }
  const float* b = p.b + column;
  int64_t a_stride = p.a_column_stride, b_stride = p.b_row_stride, depth = p.depth;
  for (int64_t j = 0; j < depth; ++j, b += b_stride) {
    auto values = Panel<V, N>::load(b, lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sums[r].add(a[r][j * a_stride], values);
  }
  float* c = p.c + row * p.c_row_stride + column;
  if (p.kept != nullptr) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      sums[r].add(p.kept[row + r], Panel<V, N>::load(c + r * p.c_row_stride, lanes));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sums[r].store(c + r * p.c_row_stride, lanes);
}

// The same for `rows` in [1, R].
template <class V, int N, int R = V::kTileRows>
inline void product_rows(const Product& p, int64_t row, int64_t rows, int64_t column,
                         int64_t lanes) {
  if constexpr (R > 1) {
    if (rows < R) return product_rows<V, N, R - 1>(p, row, rows, column, lanes);
  }
  product_tile<V, R, N>(p, row, column, lanes);
}

template <class V>
inline void multiply(const Product& p) {
  for_panels<V>(p.columns, [&]<int N>(int64_t column, int64_t lanes) {
    for (int64_t row = 0; row < p.rows; row += V::kTileRows) {
      int64_t rows = p.rows - row < V::kTileRows ? p.rows - row : V::kTileRows;
      product_rows<V, N>(p, row, rows, column, lanes);
    }
  });
}

}  // namespace banyan::simd
