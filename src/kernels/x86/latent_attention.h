// Attention over latents that all heads share; the formulas' sources are in
// portable/latent_attention.cpp.
//
// The queries of some heads of one row run together: they see the same keys, so a tile of latents
// is scored by one matrix product and summed by another. The key axis is cut at absolute multiples
// of kLatentTile, and within a tile a query's sums run in the order of the keys, so its result
// depends neither on its neighbours nor on how the heads were shared out.
#pragma once

#include "kernels/launch.h"
#include "kernels/x86/dot.h"
#include "tensor/float_types.h"

namespace banyan::x86 {

constexpr int64_t kLatentTile = 64;
constexpr int64_t kLatentQueriesMax = 24;

// Queries of one row. Their weighted sums of latents grow in place, in `out`.
struct LatentQueries {
  int64_t count;
  const float* q[kLatentQueriesMax];  // [width] each
  float* out[kLatentQueriesMax];      // [rank] each
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

template <class S>
inline void locate_latents(const LatentAttentionArgs& a, const SpanArgs& span, int64_t start,
                           int64_t end, LatentTile<S>& tile) {
  tile.count = end - start < kLatentTile ? (end > start ? end - start : 0) : kLatentTile;
  for (int64_t j = 0; j < tile.count;) {
    // The rows of one page follow each other.
    int64_t in_page = a.page_size - (start + j) % a.page_size;
    int64_t stop = tile.count - j < in_page ? tile.count : j + in_page;
    const S* row = static_cast<const S*>(a.pool) +
                   pool_offset(a.page_table, span, start + j, 0, 1, a.page_size, a.width);
    for (; j < stop; ++j, row += a.width) tile.rows[j] = row;
  }
}

// Calls body(first, rows) for groups of at most kRows queries, as even as can be: a tile of few
// rows does little with what it loads.
template <int kRows, class Body>
inline void for_query_groups(int64_t count, const Body& body) {
  int64_t groups = (count + kRows - 1) / kRows;
  for (int64_t g = 0; g < groups; ++g) {
    int64_t first = count * g / groups;
    body(first, count * (g + 1) / groups - first);
  }
}

// weights[i][j] = scale * q_i . latent_j. On the way the next tile is fetched.
template <class V, class S>
inline void score_latents(const LatentAttentionArgs& a, const LatentTile<S>& tile,
                          const LatentTile<S>& next, LatentQueries& queries) {
  for (int64_t j = 0; j < tile.count; j += kTileOutputs) {
    const S* keys[kTileOutputs];
    int64_t count = tile.count - j < kTileOutputs ? tile.count - j : kTileOutputs;
    for (int64_t b = 0; b < kTileOutputs; ++b) {
      keys[b] = tile.rows[j + (b < count ? b : count - 1)];
      if (j + b >= next.count) continue;
      const auto* line = reinterpret_cast<const std::byte*>(next.rows[j + b]);
      int64_t bytes = a.width * static_cast<int64_t>(sizeof(S));
      for (int64_t c = 0; c < bytes; c += 64) __builtin_prefetch(line + c);
    }
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

// Turns the tile's scores of query i into weights exp(score - max), and brings what was summed
// before to the new maximum.
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
// and N vectors of columns from c on, of which the last holds `lanes` columns.
template <class V, int R, int N, class S>
inline void add_latent_block(const LatentTile<S>& tile, int64_t c, int64_t lanes, float* const* out,
                             const float (*weights)[kLatentTile]) {
  typename V::F sums[R][N];
  auto load = [&](auto* p, int n) {
    return n == N - 1 ? load_up_to<V>(p + n * V::kLanes, lanes) : V::load(p + n * V::kLanes);
  };
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) sums[r][n] = load(out[r] + c, n);
  }
  for (int64_t j = 0; j < tile.count; ++j) {
    typename V::F value[N];
    for (int n = 0; n < N; ++n) value[n] = load(tile.rows[j] + c, n);
    for (int r = 0; r < R; ++r) {
      auto weight = V::set(weights[r][j]);
      for (int n = 0; n < N; ++n) sums[r][n] = V::fma(weight, value[n], sums[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N - 1; ++n) V::store(out[r] + c + n * V::kLanes, sums[r][n]);
    store_up_to<V>(out[r] + c + (N - 1) * V::kLanes, lanes, sums[r][N - 1]);
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

// Adds the tile's latents to all queries, a block of columns after the other: that much of the tile
// stays in the level-1 cache while the queries pass by.
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

// The queries of heads [head, head + count) of row i of a span, before the first key.
static inline void start_latents(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i,
                                 int64_t head, int64_t count, LatentQueries& queries) {
  queries.count = count;
  int64_t row = span.row_begin + i;
  for (int64_t n = 0; n < count; ++n) {
    queries.q[n] = a.q + row * a.q_row_stride + (head + n) * a.width;
    queries.out[n] = a.out + (row * a.heads + head + n) * a.rank;
    queries.max[n] = -0x1.fffffep+127f;
    queries.sum[n] = 0;
    for (int64_t c = 0; c < a.rank; ++c) queries.out[n][c] = 0;
  }
}

template <class V, class S>
inline void attend_latents(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i,
                           int64_t head, int64_t count) {
  LatentQueries queries;
  start_latents(a, span, i, head, count, queries);
  int64_t end = span.first_position + i + 1;
  LatentTile<S> tiles[2];
  locate_latents(a, span, 0, end, tiles[0]);
  for (int64_t t = 0; t * kLatentTile < end; ++t) {
    const LatentTile<S>& tile = tiles[t % 2];
    LatentTile<S>& next = tiles[(t + 1) % 2];
    locate_latents(a, span, (t + 1) * kLatentTile, end, next);
    score_latents<V, S>(a, tile, next, queries);
    for (int64_t n = 0; n < count; ++n) weigh_latents<V>(a.rank, tile.count, n, queries);
    add_latents<V, S>(a.rank, tile, queries);
  }
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t c = 0; c < a.rank; ++c) queries.out[n][c] /= queries.sum[n];
  }
}

// Calls body(span, i, head, count) for runs of heads of one row, short enough that there is one for
// every worker. Later rows of a span see more keys, so the workers take them in turn.
template <class Body>
static inline void for_latent_items(const LatentAttentionArgs& a, const Body& body) {
  int64_t rows = span_rows(a.spans, a.span_count);
  int64_t workers = a.launch.threads ? a.launch.threads->size() : 1;
  int64_t runs = (a.heads + kLatentQueriesMax - 1) / kLatentQueriesMax;
  if (rows > 0 && rows * runs < workers) runs = (workers + rows - 1) / rows;
  if (runs > a.heads) runs = a.heads;
  parallel_interleaved(a.launch, [&](int64_t next, int64_t step) {
    int64_t first = 0;
    for (int64_t s = 0; s < a.span_count; ++s) {
      const SpanArgs& span = a.spans[s];
      for (; next < first + span.row_count * runs; next += step) {
        int64_t run = (next - first) % runs;
        int64_t head = a.heads * run / runs;
        body(span, (next - first) / runs, head, a.heads * (run + 1) / runs - head);
      }
      first += span.row_count * runs;
    }
  });
}

template <class V, class S>
void attend_all_latents(const LatentAttentionArgs& a) {
  for_latent_items(a, [&](const SpanArgs& span, int64_t i, int64_t head, int64_t count) {
    attend_latents<V, S>(a, span, i, head, count);
  });
}

template <class V>
void latent_attention(const LatentAttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all_latents<V, BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return attend_all_latents<V, Float16>(a);
  attend_all_latents<V, float>(a);
}

}  // namespace banyan::x86
