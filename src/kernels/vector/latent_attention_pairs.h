// Latent attention over bf16 latents on a processor that multiplies pairs of bf16: twice the rate
// of f32. Queries and weights are rounded to bf16; scores, sums and the softmax are f32.
//
// A score is a sum of pairs of columns, straight from the latents. For the weighted sum the pairs
// are two keys of one column, so two latents are interleaved on the way, which leaves the columns
// of each 32 in the order in which the processor interleaves; `out` keeps it until the end.
#pragma once

#include "kernels/vector/latent_attention.h"

namespace banyan::simd {

constexpr int64_t kPairColumns = 32;     // of one step: two bf16 for each of 16 lanes
constexpr int64_t kPairWidthMax = 1024;  // of a latent; wider ones take the f32 form
constexpr int kPairRows = 6;

// Queries of one row as bf16, in addition to those of the f32 form.
struct PairQueries {
  LatentQueries f32;
  alignas(64) BFloat16 q[kLatentQueriesMax][kPairWidthMax];
  alignas(64) BFloat16 weights[kLatentQueriesMax][kLatentTile];
};

// Rows of the next tile, prefetched line by line between the products: many at once would exhaust
// the processor's few line fill buffers and stall it.
struct RowsAhead {
  int count = 0;
  const BFloat16* rows[kTileOutputs];
};

// scores[r][j] = sum over c < width of q[r][c] * keys[j][c], for R queries.
template <class V, int R>
inline void score_pairs(const BFloat16 (*q)[kPairWidthMax], const BFloat16* const* keys,
                        int64_t width, const RowsAhead& ahead, float (*scores)[kTileOutputs]) {
  typename V::F sums[R][kTileOutputs];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kTileOutputs; ++j) sums[r][j] = V::set(0);
  }
  for (int64_t c = 0; c < width; c += kPairColumns) {
    for (int n = 0; n < ahead.count; ++n) __builtin_prefetch(ahead.rows[n] + c);
    typename V::I key[kTileOutputs];
#pragma GCC unroll 4
    for (int j = 0; j < kTileOutputs; ++j) key[j] = V::load_pairs(keys[j] + c);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      auto x = V::load_pairs(q[r] + c);
#pragma GCC unroll 4
      for (int j = 0; j < kTileOutputs; ++j) sums[r][j] = V::dot2(sums[r][j], x, key[j]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    V::sum4(sums[r][0], sums[r][1], sums[r][2], sums[r][3], scores[r]);
  }
}

template <class V, int R = kPairRows>
inline void score_pairs_of(int64_t rows, const BFloat16 (*q)[kPairWidthMax],
                           const BFloat16* const* keys, int64_t width, const RowsAhead& ahead,
                           float (*scores)[kTileOutputs]) {
  if constexpr (R > 1) {
    if (rows < R) return score_pairs_of<V, R - 1>(rows, q, keys, width, ahead, scores);
  }
  score_pairs<V, R>(q, keys, width, ahead, scores);
}

template <class V>
inline void score_tile_pairs(const LatentAttentionArgs& a, const LatentTile<BFloat16>& tile,
                             const LatentTile<BFloat16>& next, PairQueries& queries) {
  for (int64_t j = 0; j < tile.count; j += kTileOutputs) {
    const BFloat16* keys[kTileOutputs];
    int64_t count = tile.count - j < kTileOutputs ? tile.count - j : kTileOutputs;
#pragma GCC unroll 4
    for (int64_t b = 0; b < kTileOutputs; ++b) {
      keys[b] = tile.rows[j + (b < count ? b : count - 1)];
    }
    int64_t fetched = 0;  // of the next tile's rows [j, j + kTileOutputs)
    for_query_groups<kPairRows>(queries.f32.count, [&](int64_t first, int64_t rows) {
      RowsAhead ahead;
      // The rows that each group of queries prefetches.
      int64_t share = (kTileOutputs * (first + rows) + queries.f32.count - 1) / queries.f32.count;
      for (; fetched < share && j + fetched < next.count; ++fetched) {
        ahead.rows[ahead.count++] = next.rows[j + fetched];
      }
      float scores[kPairRows][kTileOutputs];
      score_pairs_of<V>(rows, queries.q + first, keys, a.width, ahead, scores);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < count; ++b) {
          queries.f32.weights[first + r][j + b] = scores[r][b] * a.scale;
        }
      }
    });
  }
}

// As weigh_latents, with weights that are rounded before they are summed.
template <class V>
inline void weigh_pairs(int64_t rank, int64_t count, int64_t i, PairQueries& queries) {
  LatentQueries& f32 = queries.f32;
  float* scores = f32.weights[i];
  int64_t end = (count + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t j = count; j < end; ++j) scores[j] = -__builtin_inff();
  auto max = V::set(f32.max[i]);
  for (int64_t j = 0; j < end; j += V::kLanes) max = V::max(V::load(scores + j), max);
  max = V::set(V::largest(max));
  auto correction = exp<V>(V::sub(V::set(f32.max[i]), max));
  auto sum = V::set(0);
  for (int64_t j = 0; j < end; j += V::kLanes) {
    BFloat16* weights = queries.weights[i] + j;
    V::store(weights, exp<V>(V::sub(V::load(scores + j), max)));
    sum = V::add(sum, V::load(weights));
  }
  f32.sum[i] = f32.sum[i] * V::lane0(correction) + V::sum(sum);
  bool same = f32.max[i] == V::lane0(max);
  f32.max[i] = V::lane0(max);
  if (same) return;  // the correction is 1
  for (int64_t c = 0; c < rank; c += V::kLanes) {
    V::store(f32.out[i] + c, V::mul(V::load(f32.out[i] + c), correction));
  }
}

// Adds the tile's latents to R queries, in N steps of columns from c on.
template <class V, int R, int N>
inline void add_pairs(const LatentTile<BFloat16>& tile, int64_t c, float* const* out,
                      const BFloat16 (*weights)[kLatentTile]) {
  typename V::F sums[R][2 * N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < 2 * N; ++n) sums[r][n] = V::load(out[r] + c + n * V::kLanes);
  }
  for (int64_t j = 0; j < tile.count; j += 2) {
    const BFloat16* first = tile.rows[j] + c;
    // Past the end the weight is 0.
    const BFloat16* second = tile.rows[j + 1 < tile.count ? j + 1 : j] + c;
    typename V::I value[2 * N];
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      auto a = V::load_pairs(first + n * kPairColumns),
           b = V::load_pairs(second + n * kPairColumns);
      value[2 * n] = V::interleave_low(a, b);
      value[2 * n + 1] = V::interleave_high(a, b);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      auto weight = V::broadcast_pair(weights[r] + j);
#pragma GCC unroll 4
      for (int n = 0; n < 2 * N; ++n) sums[r][n] = V::dot2(sums[r][n], weight, value[n]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < 2 * N; ++n) V::store(out[r] + c + n * V::kLanes, sums[r][n]);
  }
}

template <class V, int N, int R = kPairRows>
inline void add_pairs_of(int64_t rows, const LatentTile<BFloat16>& tile, int64_t c,
                         float* const* out, const BFloat16 (*weights)[kLatentTile]) {
  if constexpr (R > 1) {
    if (rows < R) return add_pairs_of<V, N, R - 1>(rows, tile, c, out, weights);
  }
  add_pairs<V, R, N>(tile, c, out, weights);
}

// Adds the tile's latents to all queries, a few columns at a time.
template <class V>
inline void add_tile_pairs(int64_t rank, const LatentTile<BFloat16>& tile, PairQueries& queries) {
  for (int64_t c = 0; c < rank;) {
    bool wide = c + 2 * kPairColumns <= rank;
    for_query_groups<kPairRows>(queries.f32.count, [&](int64_t first, int64_t rows) {
      float* const* out = queries.f32.out + first;
      if (wide) {
        add_pairs_of<V, 2>(rows, tile, c, out, queries.weights + first);
      } else {
        add_pairs_of<V, 1>(rows, tile, c, out, queries.weights + first);
      }
    });
    c += wide ? 2 * kPairColumns : kPairColumns;
  }
}

// The arithmetic in pairs.
template <class V>
struct LatentPairs : LatentVectors<V> {
  using LatentVectors<V>::LatentVectors;
  PairQueries queries;

  void start(const LatentAttentionArgs& a, const LatentItem& item) {
    start_queries(a, item, queries.f32);
    for (int64_t n = 0; n < item.count; ++n) {
      for (int64_t c = 0; c < a.width; c += V::kLanes) {
        V::store(queries.q[n] + c, V::load(queries.f32.q[n] + c));
      }
    }
  }
  void attend(const LatentAttentionArgs& a, const LatentItem& item, int64_t part,
              const PartialSums& to) {
    using Tile = LatentTile<BFloat16>;
    start_part(item, to, queries.f32);
    for_latent_tiles<BFloat16>(a, item, part, [&](const Tile& tile, const Tile& next) {
      score_tile_pairs<V>(a, tile, next, queries);
      for (int64_t n = 0; n < item.count; ++n) weigh_pairs<V>(a.rank, tile.count, n, queries);
      add_tile_pairs<V>(a.rank, tile, queries);
    });
    end_part(item, queries.f32, to);
  }
  static void write(const float* sums, float weight, int64_t rank, float* out) {
    auto divisor = V::set(weight);
    for (int64_t c = 0; c < rank; c += kPairColumns) {
      auto low = V::div(V::load(sums + c), divisor);
      auto high = V::div(V::load(sums + c + V::kLanes), divisor);
      V::store(out + c, V::columns_low(low, high));
      V::store(out + c + V::kLanes, V::columns_high(low, high));
    }
  }
};

template <class V>
void latent_attention_pairs(const LatentAttentionArgs& a) {
  bool fits = a.width % kPairColumns == 0 && a.rank % kPairColumns == 0;
  if (a.pool_dtype != DType::kBF16 || !fits || a.width > kPairWidthMax) {
    return latent_attention<V>(a);
  }
  attend_all_latents<LatentPairs<V>>(a);
}

}  // namespace banyan::simd
