// Attention over bf16 pages on a processor that multiplies pairs of bf16: twice the rate of f32.
// Queries and weights are rounded to bf16; scores, sums and the softmax are f32.
//
// A score is a sum over pairs of columns in ascending order, sixteen keys side by side, for which a
// tile of keys is transposed first. A weighted sum runs over pairs of keys, (2 i, 2 i + 1) by
// absolute position: two values are interleaved, which leaves the columns of each 32 in the order
// in which the processor interleaves, and sums keep it until the end. A pair of which a query sees
// one key only is multiplied with zeros in place of the other, whatever that holds.
#pragma once

#include "kernels/vector/attention_blocks.h"
#include "kernels/vector/dot.h"

namespace banyan::simd {

// The values of consecutive pairs of keys: as they lie in the pool, or interleaved before.
struct PairValues {
  const BFloat16* const* rows;   // of pair p: 2 p and 2 p + 1; or null
  const std::byte* interleaved;  // [pairs, width] of two bf16
  KeyRange pairs;
};

// The next tile's rows, fetched one by one between the products: many at once would fill the
// processor's few places for lines on their way, and none for a while would leave them empty.
struct PairRowsAhead {
  const TileRows<BFloat16>& tile;
  int64_t width, value_width;
  int64_t key, end;
  bool values = false;  // whether the key's value is next

  PairRowsAhead(const TileRows<BFloat16>& next, const Queries& queries)
      : tile(next),
        width(queries.width),
        value_width(queries.value_width),
        key(next.range.begin),
        end(next.range.end) {}

  [[gnu::always_inline]] void fetch() {
    if (key >= end) return;
    prefetch_row(values ? tile.values[key] : tile.keys[key], values ? value_width : width);
    key += values;
    values = !values;
  }
};

// exp(x) for x <= 0 within 3e-6, which is rounded to bf16; 0 below -87, NaN for NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by the polynomial of degree 4 whose largest relative
// error is the least: 2.6e-6. n stands in the last bits of x / ln 2 + 1.5 * 2^23, with the bias of
// an exponent.
template <class V>
struct RoundedWeights {
  using Element = BFloat16;
  [[gnu::always_inline]] static typename V::F of(typename V::F x) {
    auto bias = V::set(0x1.8p+23f + 127);
    auto biased = V::fma(x, V::set(0x1.715476p+0f), bias);
    auto r = V::fma(V::sub(biased, bias), V::set(-0x1.62e430p-1f), x);
    auto p = V::set(0x1.53a092p-5f);
    p = V::fma(p, r, V::set(0x1.57e15cp-3f));
    p = V::fma(p, r, V::set(0x1.0005bap-1f));
    p = V::fma(p, r, V::set(0x1.fffb32p-1f));
    p = V::fma(p, r, V::set(0x1.ffffe8p-1f));
    return V::times_power_unless_below(x, V::set(-87.0f), p, biased);
  }
  [[gnu::always_inline]] static typename V::F store(BFloat16* to, typename V::F weight) {
    V::store_rounded(to, weight);
    return V::load(to);
  }
};

// Interleaving takes four columns of every eight into the first register, four into the second.
static constexpr int64_t interleaved_place(int64_t c) {
  return c / 32 * 32 + c % 32 / 4 % 2 * 16 + c % 32 / 8 * 4 + c % 4;
}

// Puts whole units of 32 interleaved columns in order.
template <class V>
inline void order_columns(const float* from, int64_t count, float* to) {
  for (int64_t c = 0; c < count; c += 2 * V::kLanes) {
    auto low = V::load(from + c), high = V::load(from + c + V::kLanes);
    V::store(to + c, V::columns_low(low, high));
    V::store(to + c + V::kLanes, V::columns_high(low, high));
  }
}

template <class V>
struct PairForm : TileForm {
  using Element = BFloat16;
  using F = typename V::F;
  using I = typename V::I;

  static constexpr int64_t kQueries = 64, kQueriesMin = 64;
  static constexpr int kRows = 6;               // queries of a register tile
  static constexpr int64_t kUnit = 32;          // columns of a register
  static constexpr int64_t kBlock = V::kLanes;  // keys side by side
  static constexpr int64_t kBlocks = kTile / kBlock;
  static constexpr int64_t kLine = 64;  // bytes
  static_assert(V::kLanes == 16);

  static bool fits(int64_t head_dim) { return head_dim % kUnit == 0; }

  static int64_t width(int64_t head_dim) { return head_dim; }
  static int64_t place(int64_t c) { return interleaved_place(c); }
  static void finish_query(const float* sums, int64_t value_dim, float* out) {
    order_columns<V>(sums, value_dim, out);
  }

  // Keys as [pairs of columns, kTile] of two bf16, values as [kTile / 2, value_width] of two bf16,
  // and the zeros of a value.
  static int64_t scratch_floats(int64_t width, int64_t value_width) {
    return kTile / 2 * (width + value_width) + value_width / 2;
  }
  static std::byte* keys_of(const Queries& queries) {
    return reinterpret_cast<std::byte*>(queries.scratch);
  }
  static std::byte* values_of(const Queries& queries) {
    return reinterpret_cast<std::byte*>(queries.scratch + kTile / 2 * queries.width);
  }
  static BFloat16* zeros_of(const Queries& queries) {
    int64_t columns = queries.width + queries.value_width;
    return reinterpret_cast<BFloat16*>(queries.scratch + kTile / 2 * columns);
  }
  static BFloat16* query_of(const Queries& queries, int64_t i) {
    return reinterpret_cast<BFloat16*>(queries.q) + i * queries.width;
  }
  static const BFloat16* weights_of(const Queries& queries, int64_t i) {
    return reinterpret_cast<const BFloat16*>(queries.weights[i]);
  }

  static void start_query(const float* q, int64_t head_dim, int64_t i, Queries& queries) {
    BFloat16* to = query_of(queries, i);
    for (int64_t c = 0; c < head_dim; c += V::kLanes) V::store(to + c, V::load(q + c));
    if (i > 0) return;
    BFloat16* zeros = zeros_of(queries);
    for (int64_t c = 0; c < queries.value_width; c += V::kLanes) V::store(zeros + c, V::set(0));
  }

  // ---- Scores ----

  static void transpose_keys(const TileRows<BFloat16>& tile, PairRowsAhead& ahead,
                             const Queries& queries) {
    std::byte* to = keys_of(queries);
    for (int64_t block = 0; block < kBlocks; ++block) {
      int64_t first = block * kBlock;
      if (first >= tile.range.end || first + kBlock <= tile.range.begin) continue;
      const BFloat16* keys[kBlock];
#pragma GCC unroll 16
      for (int64_t j = 0; j < kBlock; ++j) {
        int64_t key = first + j;
        // Drops the scores of keys that no query sees.
        if (key < tile.range.begin) key = tile.range.begin;
        if (key >= tile.range.end) key = tile.range.end - 1;
        keys[j] = tile.keys[key];
      }
      for (int64_t c = 0; c < queries.width; c += kUnit) {
        I rows[kBlock];
#pragma GCC unroll 16
        for (int64_t j = 0; j < kBlock; ++j) rows[j] = V::load_pairs(keys[j] + c);
        ahead.fetch();
        V::transpose(rows);
        ahead.fetch();
#pragma GCC unroll 16
        for (int64_t p = 0; p < kBlock; ++p) {
          V::store_line(to + ((c / 2 + p) * kBlocks + block) * kLine, rows[p]);
        }
      }
    }
  }

  // weights[r][j] = q_r . k_j for R queries from i on and B blocks of keys from `block` on.
  template <int R, int B>
  static void score_tile(int64_t i, int64_t block, PairRowsAhead& ahead, Queries& queries) {
    F sums[R][B];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) sums[r][b] = V::set(0);
    }
    const std::byte* keys = keys_of(queries) + block * kLine;
    const BFloat16* q = query_of(queries, i);
    int64_t width = queries.width;
    for (int64_t c = 0; c < width; c += 2, keys += kBlocks * kLine) {
      if (c % 4 == 0) ahead.fetch();
      I key[B];
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) key[b] = V::load_line(keys + b * kLine, 0);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        I x = V::broadcast_pair(q + r * width + c);
#pragma GCC unroll 4
        for (int b = 0; b < B; ++b) sums[r][b] = V::dot2(sums[r][b], x, key[b]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) {
        V::store(queries.weights[i + r] + (block + b) * kBlock, sums[r][b]);
      }
    }
  }

  // The same for `rows` in [1, R] queries.
  template <int B, int R = kRows>
  static void score_rows(int64_t rows, int64_t i, int64_t block, PairRowsAhead& ahead,
                         Queries& queries) {
    if constexpr (R > 1) {
      if (rows < R) return score_rows<B, R - 1>(rows, i, block, ahead, queries);
    }
    score_tile<R, B>(i, block, ahead, queries);
  }

  // For the blocks in which any of the queries [first, first + rows) sees a key.
  static void score_group(int64_t first, int64_t rows, int64_t start, PairRowsAhead& ahead,
                          Queries& queries) {
    KeyRange seen = {kTile, 0};
    for (int64_t i = first; i < first + rows; ++i) {
      KeyRange own = visible(queries, i, start);
      if (own.begin < seen.begin) seen.begin = own.begin;
      if (own.end > seen.end) seen.end = own.end;
    }
    int64_t block = seen.begin / kBlock, end = (seen.end + kBlock - 1) / kBlock;
    if (end - block == kBlocks) return score_rows<kBlocks>(rows, first, block, ahead, queries);
    for (; block + 2 <= end; block += 2) score_rows<2>(rows, first, block, ahead, queries);
    if (block < end) score_rows<1>(rows, first, block, ahead, queries);
  }

  // ---- Weighted sums ----

  static void interleave_values(const TileRows<BFloat16>& tile, const Queries& queries) {
    std::byte* to = values_of(queries);
    for (int64_t p = (tile.range.begin + 1) / 2; p < tile.range.end / 2; ++p) {
      const BFloat16 *a = tile.values[2 * p], *b = tile.values[2 * p + 1];
      std::byte* line = to + p * queries.value_width * 4;
      for (int64_t c = 0; c < queries.value_width; c += kUnit, line += 2 * kLine) {
        I first = V::load_pairs(a + c), second = V::load_pairs(b + c);
        V::store_line(line, V::interleave_low(first, second));
        V::store_line(line + kLine, V::interleave_high(first, second));
      }
    }
  }

  // sums[r][c] += the products of the weights and values of all pairs, for R queries and N units of
  // columns from c on. weights[r * 2 kWeightStride + j] is that of key j.
  template <int R, int N, bool kInterleaved>
  static void add_columns(const PairValues& values, int64_t c, const BFloat16* weights, float* sums,
                          int64_t width, PairRowsAhead& ahead) {
    F acc[R][2 * N];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < 2 * N; ++n) acc[r][n] = V::load(sums + r * width + c + n * V::kLanes);
    }
    for (int64_t p = values.pairs.begin; p < values.pairs.end; ++p) {
      I value[2 * N];
      if constexpr (kInterleaved) {
        const std::byte* line = values.interleaved + (p * width + c) * 4;
#pragma GCC unroll 4
        for (int n = 0; n < 2 * N; ++n) value[n] = V::load_line(line + n * kLine, 0);
      } else {
        const BFloat16 *a = values.rows[2 * p] + c, *b = values.rows[2 * p + 1] + c;
#pragma GCC unroll 2
        for (int n = 0; n < N; ++n) {
          I first = V::load_pairs(a + n * kUnit), second = V::load_pairs(b + n * kUnit);
          value[2 * n] = V::interleave_low(first, second);
          value[2 * n + 1] = V::interleave_high(first, second);
        }
      }
      ahead.fetch();
      ahead.fetch();
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        I weight = V::broadcast_pair(weights + r * 2 * kWeightStride + 2 * p);
#pragma GCC unroll 4
        for (int n = 0; n < 2 * N; ++n) acc[r][n] = V::dot2(acc[r][n], weight, value[n]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < 2 * N; ++n) V::store(sums + r * width + c + n * V::kLanes, acc[r][n]);
    }
  }

  // The same over all columns, for `rows` in [1, R] queries from i on.
  template <bool kInterleaved, int R = kRows>
  static void add_rows(int64_t rows, int64_t i, const PairValues& values, PairRowsAhead& ahead,
                       Queries& queries) {
    if constexpr (R > 1) {
      if (rows < R) return add_rows<kInterleaved, R - 1>(rows, i, values, ahead, queries);
    }
    if (values.pairs.begin >= values.pairs.end) return;
    constexpr int kUnits = R <= 2 ? 4 : 2;
    int64_t width = queries.value_width, c = 0;
    float* sums = queries.sums + i * width;
    const BFloat16* weights = weights_of(queries, i);
    for (; c + kUnits * kUnit <= width; c += kUnits * kUnit) {
      add_columns<R, kUnits, kInterleaved>(values, c, weights, sums, width, ahead);
    }
    for (; c < width; c += kUnit) {
      add_columns<R, 1, kInterleaved>(values, c, weights, sums, width, ahead);
    }
  }

  // The pair in which query i sees only key j.
  static void add_single(const TileRows<BFloat16>& tile, int64_t i, int64_t j, PairRowsAhead& ahead,
                         Queries& queries) {
    const BFloat16* rows[kTile];
    rows[j] = tile.values[j];
    rows[j ^ 1] = zeros_of(queries);
    add_rows<false, 1>(1, i, {rows, nullptr, {j / 2, j / 2 + 1}}, ahead, queries);
  }

  // Adds the tile's values to the queries [first, first + rows): together where all of them see
  // both keys of a pair, one by one elsewhere.
  static void add_group(int64_t first, int64_t rows, PairValues values,
                        const TileRows<BFloat16>& tile, int64_t start, PairRowsAhead& ahead,
                        Queries& queries) {
    KeyRange common = {0, kTile / 2};
    for (int64_t i = first; i < first + rows; ++i) {
      KeyRange seen = visible(queries, i, start);
      if ((seen.begin + 1) / 2 > common.begin) common.begin = (seen.begin + 1) / 2;
      if (seen.end / 2 < common.end) common.end = seen.end / 2;
    }
    if (common.end < common.begin) common.end = common.begin;
    for (int64_t i = first; i < first + rows; ++i) {
      KeyRange seen = visible(queries, i, start);
      if (seen.begin >= seen.end) continue;
      if (seen.begin % 2 != 0) add_single(tile, i, seen.begin, ahead, queries);
      int64_t end = seen.end / 2 < common.begin ? seen.end / 2 : common.begin;
      add_rows<false, 1>(1, i, {tile.values, nullptr, {(seen.begin + 1) / 2, end}}, ahead, queries);
    }
    values.pairs = common;
    if (values.interleaved != nullptr) {
      add_rows<true>(rows, first, values, ahead, queries);
    } else {
      add_rows<false>(rows, first, values, ahead, queries);
    }
    for (int64_t i = first; i < first + rows; ++i) {
      KeyRange seen = visible(queries, i, start);
      if (seen.begin >= seen.end) continue;
      int64_t begin = (seen.begin + 1) / 2 > common.end ? (seen.begin + 1) / 2 : common.end;
      add_rows<false, 1>(1, i, {tile.values, nullptr, {begin, seen.end / 2}}, ahead, queries);
      if (seen.end % 2 != 0) add_single(tile, i, seen.end - 1, ahead, queries);
    }
  }

  // ---- The form ----

  static void attend_tile(const AttentionArgs& a, const TileRows<BFloat16>& tile,
                          const TileRows<BFloat16>& next, int64_t start, Queries& queries) {
    PairRowsAhead ahead(next, queries);
    transpose_keys(tile, ahead, queries);
    for_query_groups<kRows>(queries.count, [&](int64_t first, int64_t rows) {
      score_group(first, rows, start, ahead, queries);
    });
    for (int64_t i = 0; i < queries.count; ++i) {
      KeyRange seen = visible(queries, i, start);
      if (seen.begin < seen.end) {
        weigh_keys<V, RoundedWeights<V>>(a.scale, a.soft_cap, seen, i, queries);
      }
    }
    // Values that only one group reads are interleaved on the fly.
    bool several = queries.count > kRows;
    if (several) interleave_values(tile, queries);
    PairValues values = {tile.values, several ? values_of(queries) : nullptr, {}};
    for_query_groups<kRows>(queries.count, [&](int64_t first, int64_t rows) {
      add_group(first, rows, values, tile, start, ahead, queries);
    });
  }
};

// Heads of other sizes, and other pools, take the plain form.
template <class V>
void attention_pairs(const AttentionArgs& a) {
  bool fits = PairForm<V>::fits(a.head_dim) && PairForm<V>::fits(a.value_dim);
  if (a.pool_dtype != DType::kBF16 || !fits) return attention<V>(a);
  attend_all<V, PairForm<V>>(a);
}

}  // namespace banyan::simd
