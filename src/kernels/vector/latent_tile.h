// What latent attention does with one tile of latents: scores, weights, weighted sums.
//
// Tiles of codes (kernels/state_rows.h) are widened to f32 first, scales included: they serve many
// heads.
#pragma once

#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "kernels/vector/dot.h"
#include "kernels/vector/split_keys.h"
#include "tensor/float_types.h"

namespace banyan::simd {

constexpr int64_t kLatentTile = 64;
constexpr int64_t kLatentQueriesMax = 24;

// Queries of one row. Their weighted sums of the latents of a part grow in `out`.
struct LatentQueries {
  int64_t count;
  const float* q[kLatentQueriesMax];  // [width] each
  float* out[kLatentQueriesMax];      // [rank, padded to vectors] each
  float max[kLatentQueriesMax];       // of the scores so far, and the sum of exp(score - max)
  float sum[kLatentQueriesMax];
  alignas(64) float weights[kLatentQueriesMax][kLatentTile];  // first scores, then exp
};

// The latents of a tile that the row sees: the first `count`.
template <class S>
struct LatentTile {
  int64_t count;
  const S* rows[kLatentTile];
};

// Of a row of f32, in whole vectors.
template <class V>
static int64_t widened_width(const LatentAttentionArgs& a) {
  return (a.width + V::kLanes - 1) / V::kLanes * V::kLanes;
}

static inline RowShape latent_row(const LatentAttentionArgs& a) {
  return {.width = a.width, .split = a.rank < a.width ? a.rank : 0};
}

// The number of keys that row i of a span attends to.
static inline int64_t latent_keys(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i) {
  if (a.selected.runs == nullptr) return span.first_position + i + 1;
  return a.selected.key_counts[span.row_begin + i];
}

// Calls body(n, position) for the selected keys of row i whose ranks are [start, start + count).
template <class Body>
static inline void for_selected(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i,
                                int64_t start, int64_t count, const Body& body) {
  if (count <= 0) return;
  SelectedRow row = selected_row(a.selected, span.row_begin + i, 0);
  int64_t run = row.run_of(start);
  for (int64_t n = 0; n < count; ++n) {
    while (start + n >= row.end_rank(run)) ++run;
    body(n, row.position(run, start + n));
  }
}

// Points a tile at the keys of ranks [start, end) of row i, as many as fit.
template <class S>
static inline void locate_latents(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i,
                                  int64_t start, int64_t end, LatentTile<S>& tile) {
  int64_t stride = row_stride<S>(latent_row(a));
  tile.count = end - start < kLatentTile ? (end > start ? end - start : 0) : kLatentTile;
  if (a.selected.runs != nullptr) {
    for_selected(a, span, i, start, tile.count, [&](int64_t n, int64_t position) {
      tile.rows[n] = static_cast<const S*>(a.pool) +
                     pool_offset(a.page_table, span, position, 0, 1, a.page_size, stride);
    });
    return;
  }
  for (int64_t j = 0; j < tile.count;) {
    // Rows of one page are contiguous.
    int64_t in_page = a.page_size - (start + j) % a.page_size;
    int64_t stop = tile.count - j < in_page ? tile.count : j + in_page;
    const S* row = static_cast<const S*>(a.pool) +
                   pool_offset(a.page_table, span, start + j, 0, 1, a.page_size, stride);
    for (; j < stop; ++j, row += stride) tile.rows[j] = row;
  }
}

template <class S>
[[gnu::always_inline]] static inline void fetch_latent(const LatentAttentionArgs& a, const S* row) {
  const auto* line = reinterpret_cast<const std::byte*>(row);
  int64_t bytes = row_stride<S>(latent_row(a)) * static_cast<int64_t>(sizeof(S));
  for (int64_t c = 0; c < bytes; c += 64) __builtin_prefetch(line + c);
}

// Converts a tile of codes to f32 at `to`, and prefetches the next one.
template <class V, class S>
inline void widen_latents(const LatentAttentionArgs& a, const LatentTile<S>& tile,
                          const LatentTile<S>& next, float* to, LatentTile<float>& wide) {
  RowShape shape = latent_row(a);
  int64_t stride = widened_width<V>(a);
  wide.count = tile.count;
  for (int64_t j = 0; j < tile.count; ++j, to += stride) {
    const S* row = tile.rows[j];
    if (j < next.count) fetch_latent(a, next.rows[j]);
    wide.rows[j] = to;
    auto widen = [&](int64_t begin, int64_t end, float scale) {
      for (int64_t c = begin; c < end; c += V::kLanes) {
        auto value = V::mul(load_up_to<V>(row + c, end - c), V::set(scale * kCodeUnit<S>));
        store_up_to<V>(to + c, end - c, value);
      }
    };
    widen(0, a.rank, row_scale(row, shape, 0));
    if (shape.split > 0) widen(shape.split, a.width, row_scale(row, shape, 1));
  }
}

// weights[i][j] = scale * q_i . latent_j. Also prefetches the next tile.
template <class V, class S>
inline void score_latents(const LatentAttentionArgs& a, const LatentTile<S>& tile,
                          const LatentTile<S>& next, LatentQueries& queries) {
  for (int64_t j = 0; j < tile.count; j += kTileOutputs) {
    const S* keys[kTileOutputs];
    int64_t count = tile.count - j < kTileOutputs ? tile.count - j : kTileOutputs;
    for (int64_t b = 0; b < kTileOutputs; ++b) {
      keys[b] = tile.rows[j + (b < count ? b : count - 1)];
    }
    int64_t fetched = next.count < j + kTileOutputs ? next.count : j + kTileOutputs;
    for (int64_t b = j; b < fetched; ++b) fetch_latent(a, next.rows[b]);
    for_query_groups<V::kTileRows>(queries.count, [&](int64_t first, int64_t rows) {
      float scores[V::kTileRows][kTileOutputs];
      dot_tile_of<V, S>(rows, queries.q + first, keys, a.width, scores);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < count; ++b) {
          queries.weights[first + r][j + b] = scores[r][b] * a.scale;
        }
      }
    });
  }
}

// Turns the tile's scores of query i into weights exp(score - max), and rescales earlier sums to
// the new maximum.
template <class V>
inline void weigh_latents(int64_t rank, int64_t count, int64_t i, LatentQueries& queries) {
  float* weights = queries.weights[i];
  int64_t end = (count + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t j = count; j < end; ++j) weights[j] = -__builtin_inff();
  auto max = V::set(queries.max[i]);
  for (int64_t j = 0; j < end; j += V::kLanes) max = V::max(V::load(weights + j), max);
  max = V::set(V::largest(max));
  auto correction = exp<V>(V::sub(V::set(queries.max[i]), max));
  auto sum = V::set(0);
  for (int64_t j = 0; j < end; j += V::kLanes) {
    auto weight = exp<V>(V::sub(V::load(weights + j), max));
    V::store(weights + j, weight);
    sum = V::add(sum, weight);
  }
  queries.sum[i] = queries.sum[i] * V::lane0(correction) + V::sum(sum);
  bool same = queries.max[i] == V::lane0(max);
  queries.max[i] = V::lane0(max);
  if (same) return;  // the correction is 1
  for (int64_t c = 0; c < rank; c += V::kLanes) {
    float* out = queries.out[i] + c;
    store_up_to<V>(out, rank - c, V::mul(load_up_to<V>(out, rank - c), correction));
  }
}

// out[r][c] += sum over the tile's keys, ascending, of weights[r][j] * latent_j[c], for R queries
// and N vectors of columns from c on; a single vector holds `lanes` columns.
template <class V, int R, int N, class S>
[[gnu::noinline]] void add_latent_block(const LatentTile<S>& tile, int64_t c, int64_t lanes,
                                        float* const* out, const float (*weights)[kLatentTile]) {
  typename V::F sums[R][N];
  auto load = [&](auto* p, int n) __attribute__((always_inline)) {
    return N == 1 ? load_up_to<V>(p, lanes) : V::load(p + n * V::kLanes);
  };
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[r][n] = load(out[r] + c, n);
  }
  for (int64_t j = 0; j < tile.count; ++j) {
    const S* row = tile.rows[j] + c;
    // The shorter side of the tile stays in registers.
    if constexpr (R < N) {
      typename V::F weight[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) weight[r] = V::set(weights[r][j]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        auto value = forgotten<V>(load(row, n));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sums[r][n] = V::fma(weight[r], value, sums[r][n]);
      }
    } else {
      typename V::F value[N];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) value[n] = load(row, n);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        auto weight = V::set(weights[r][j]);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) sums[r][n] = V::fma(weight, value[n], sums[r][n]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      float* to = out[r] + c + n * V::kLanes;
      N == 1 ? store_up_to<V>(to, lanes, sums[r][n]) : V::store(to, sums[r][n]);
    }
  }
}

// The same for `rows` in [1, R] queries.
template <class V, int N, class S, int R = V::kTileRows>
inline void add_latent_block_of(int64_t rows, const LatentTile<S>& tile, int64_t c, int64_t lanes,
                                float* const* out, const float (*weights)[kLatentTile]) {
  if constexpr (R > 1) {
    if (rows < R) {
      return add_latent_block_of<V, N, S, R - 1>(rows, tile, c, lanes, out, weights);
    }
  }
  add_latent_block<V, R, N>(tile, c, lanes, out, weights);
}

// Adds the tile's latents to all queries, one block of columns at a time: that part of the tile
// stays in the level-1 cache while all queries use it.
template <class V, class S>
inline void add_latents(int64_t rank, const LatentTile<S>& tile, LatentQueries& queries) {
  constexpr int kVectors = 4;
  for (int64_t c = 0; c < rank;) {
    bool wide = c + kVectors * V::kLanes <= rank;
    int64_t lanes = wide || rank - c >= V::kLanes ? V::kLanes : rank - c;
    for_query_groups<V::kTileRows>(queries.count, [&](int64_t first, int64_t rows) {
      float* const* out = queries.out + first;
      if (wide) {
        add_latent_block_of<V, kVectors>(rows, tile, c, lanes, out, queries.weights + first);
      } else {
        add_latent_block_of<V, 1>(rows, tile, c, lanes, out, queries.weights + first);
      }
    });
    c += wide ? kVectors * V::kLanes : lanes;
  }
}

}  // namespace banyan::simd
