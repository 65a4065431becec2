// What attention does with one tile of keys and values: scores, weights, weighted sums.
//
// Columns of a head are kept in *working order*: that in which a vector of the pool's type is
// widened to f32. For f32 and f16 it is the pool's own; a register of bf16 holds two vectors, first
// those in even places, then those in odd ones, each of which takes one instruction to widen.
#pragma once

#include "kernels/kernel_table.h"
#include "kernels/vector/split_keys.h"
#include "kernels/vector/vec_math.h"
#include "tensor/float_types.h"

namespace banyan::simd {

constexpr int64_t kTile = 64;
constexpr int64_t kWeightStride = 80;  // a tile's scores in whole cache lines, and what spills over
constexpr int kPrefetchLevel2 = 2;

// How vectors of working order lie in a row: `kPhases` of them in each unit of kLanes * kPhases.
template <class V, class S>
struct Columns {
  static constexpr int kPhases = 1;
  static constexpr int64_t kUnit = V::kLanes;
  template <int Phase>
  static typename V::F load(const S* unit) {
    return V::load(unit);
  }
  template <int Phase>
  static typename V::F load_first(const S* unit, int64_t n) {
    return V::load_first(unit, n);
  }
};

template <class V>
struct Columns<V, BFloat16> {
  static constexpr int kPhases = 2;
  static constexpr int64_t kUnit = 2 * V::kLanes;
  template <int Phase>
  static typename V::F widen(typename V::I pairs) {
    return Phase == 0 ? V::low_bf16(pairs) : V::high_bf16(pairs);
  }
  template <int Phase>
  static typename V::F load(const BFloat16* unit) {
    return widen<Phase>(forgotten<V>(V::load_line(reinterpret_cast<const std::byte*>(unit), 0)));
  }
  template <int Phase>
  static typename V::F load_first(const BFloat16* unit, int64_t n) {
    return widen<Phase>(V::load_pairs_first(unit, n));
  }
};

// The columns of a head in whole units; those beyond head_dim are zero.
template <class V, class S>
static constexpr int64_t working_width(int64_t head_dim) {
  constexpr int64_t kUnit = Columns<V, S>::kUnit;
  return (head_dim + kUnit - 1) / kUnit * kUnit;
}

// The place of column c in working order.
template <class V, class S>
static constexpr int64_t working_place(int64_t c) {
  using C = Columns<V, S>;
  return c / C::kUnit * C::kUnit + c % C::kPhases * V::kLanes + c % C::kUnit / C::kPhases;
}

// Up to kMax queries of one key-value head, and the sums over the keys of one part.
template <int64_t kMax>
struct QueryBlock {
  int64_t count = 0;
  int64_t width = 0, value_width = 0;      // of q and of sums
  float* q = nullptr;                      // [count, width]
  float* scratch = nullptr;                // of the form that is used
  float* sums = nullptr;                   // [count, value_width]: weighted values
  int64_t first_key[kMax], end_key[kMax];  // visible: [first_key, end_key)
  float max[kMax];                         // of the scores so far
  float weight[kMax];                      // the sum of exp(score - max)
};

constexpr int64_t kQueriesMax = 64;

// Queries of a form that takes keys tile by tile.
struct Queries : QueryBlock<kQueriesMax> {
  alignas(64) float weights[kQueriesMax][kWeightStride];  // the tile's: first scores, then exp
};

// Where the keys and values of a tile are.
template <class S>
struct TileRows {
  using Element = S;
  KeyRange range;  // of the entries that are set, from the tile's start
  const S* keys[kTile];
  const S* values[kTile];
};

// Scales for the scores and weights of a tile's rows: none for rows of floats.
struct NoScales {
  template <class V>
  typename V::F with_key(typename V::F scale, int64_t) const {
    return scale;
  }
  template <class V>
  typename V::F with_value(typename V::F weight, int64_t) const {
    return weight;
  }
};

static inline int64_t clamp_to_tile(int64_t key) {
  return key < 0 ? 0 : (key > kTile ? kTile : key);
}

// What query i sees of the tile that starts at position `tile`, from there.
static inline KeyRange visible(const Queries& queries, int64_t i, int64_t tile) {
  return {clamp_to_tile(queries.first_key[i] - tile), clamp_to_tile(queries.end_key[i] - tile)};
}

// Starts to load a row into the level-2 cache, which on Zen 4 takes nearly twice the bytes per
// second of level 1, which has fewer miss buffers. Always inline, because g++ 12 considers a
// function that only prefetches free of effects, and drops the calls.
template <class S>
[[gnu::always_inline]] static inline void prefetch_row(const S* row, int64_t head_dim) {
  constexpr int64_t kPerLine = 64 / sizeof(S);
  for (int64_t c = 0; c < head_dim; c += kPerLine) __builtin_prefetch(row + c, 0, kPrefetchLevel2);
}

constexpr int kTileKeys = 4;

template <class V, int R>
struct ScoreSums {
  typename V::F acc[R][kTileKeys];

  // Adds the products of the unit of columns at c, of which there are `left`.
  template <class S, int Phase>
  [[gnu::always_inline]] inline void add(const float* q, int64_t width, const S* const* k,
                                         int64_t c, int64_t left) {
    using C = Columns<V, S>;
    auto load_key = [&](int j) __attribute__((always_inline)) {
      return left < C::kUnit ? C::template load_first<Phase>(k[j] + c, left)
                             : C::template load<Phase>(k[j] + c);
    };
    auto load_query = [&](int r) __attribute__((always_inline)) {
      return V::load(q + r * width + c + Phase * V::kLanes);
    };
    // The shorter side of the tile stays in registers.
    if constexpr (R < kTileKeys) {
      typename V::F query[R];
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) query[r] = load_query(r);
#pragma GCC unroll 4
      for (int j = 0; j < kTileKeys; ++j) {
        auto key = forgotten<V>(load_key(j));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) acc[r][j] = V::fma(query[r], key, acc[r][j]);
      }
    } else {
      typename V::F key[kTileKeys];
#pragma GCC unroll 4
      for (int j = 0; j < kTileKeys; ++j) key[j] = load_key(j);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        auto query = load_query(r);
#pragma GCC unroll 4
        for (int j = 0; j < kTileKeys; ++j) acc[r][j] = V::fma(query, key[j], acc[r][j]);
      }
    }
  }
};

// scores[r][j] = q_r . k_j for R queries and kTileKeys keys. A sum runs in kLanes lanes, in working
// order, and ends in one fixed tree, so that it depends on no other query or key.
template <class V, class S, int R>
[[gnu::always_inline]] inline void score_tile(const float* q, int64_t width, const S* const* k,
                                              int64_t head_dim, float* scores) {
  using C = Columns<V, S>;
  ScoreSums<V, R> sums = {};
  int64_t whole = head_dim / C::kUnit * C::kUnit;
  for (int64_t c = 0; c < whole; c += C::kUnit) {
    sums.template add<S, 0>(q, width, k, c, C::kUnit);
    if constexpr (C::kPhases == 2) sums.template add<S, 1>(q, width, k, c, C::kUnit);
  }
  if (whole < head_dim) {
    sums.template add<S, 0>(q, width, k, whole, head_dim - whole);
    if constexpr (C::kPhases == 2) {
      sums.template add<S, 1>(q, width, k, whole, head_dim - whole);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    V::sum4(sums.acc[r][0], sums.acc[r][1], sums.acc[r][2], sums.acc[r][3],
            scores + r * kWeightStride);
  }
}

// The same for `rows` in [1, kTileRows].
template <class V, class S, int R = V::kTileRows>
inline void score_rows(int64_t rows, const float* q, int64_t width, const S* const* k,
                       int64_t head_dim, float* scores) {
  if constexpr (R > 1) {
    if (rows < R) return score_rows<V, S, R - 1>(rows, q, width, k, head_dim, scores);
  }
  score_tile<V, S, R>(q, width, k, head_dim, scores);
}

// weights[i][j] = q_i . k_j for the tile's keys, whether or not visible to query i. On the way the
// tile's values are fetched into the cache.
template <class V, class S>
inline void score_keys(const TileRows<S>& tile, int64_t head_dim, Queries& queries) {
  for (int64_t j = tile.range.begin; j < tile.range.end; j += kTileKeys) {
    const S* k[kTileKeys];
    for (int64_t b = 0; b < kTileKeys; ++b) {
      int64_t key = j + b < tile.range.end ? j + b : tile.range.end - 1;
      k[b] = tile.keys[key];
      prefetch_row(tile.values[key], head_dim);
    }
    for (int64_t i = 0; i < queries.count; i += V::kTileRows) {
      int64_t rows = queries.count - i < V::kTileRows ? queries.count - i : V::kTileRows;
      score_rows<V, S>(rows, queries.q + i * queries.width, queries.width, k, head_dim,
                       &queries.weights[i][j]);
    }
  }
}

// Weights of f32: exp(score - max).
template <class V>
struct PlainWeights {
  using Element = float;
  static typename V::F of(typename V::F difference) { return exp<V>(difference); }
  static typename V::F store(float* to, typename V::F weight) {
    V::store(to, weight);
    return weight;
  }
};

// Turns the tile's products of query i into scores, and those into weights, zero for the keys that
// it does not see, and brings what was summed before to the new maximum. Weights of another type
// than float stand in the beginning of the row; what is summed is what was stored, but for scales
// of values.
template <class V, class Weights = PlainWeights<V>, class Scales = NoScales>
inline void weigh_keys(float scale, float soft_cap, KeyRange range, int64_t i, Queries& queries,
                       const Scales& scales = {}) {
  float* weights = queries.weights[i];
  auto* stored = reinterpret_cast<typename Weights::Element*>(weights);
  // Whole vectors around the visible keys; what lies further out would add nothing.
  int64_t begin = range.begin / V::kLanes * V::kLanes;
  int64_t end = (range.end + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t j = begin; j < end; j += V::kLanes) {
    auto score = V::mul(V::load(weights + j), scales.template with_key<V>(V::set(scale), j));
    V::store(weights + j, soft_cap > 0 ? soften<V>(score, soft_cap) : score);
  }
  for (int64_t j = begin; j < range.begin; ++j) weights[j] = -__builtin_inff();
  for (int64_t j = range.end; j < end; ++j) weights[j] = -__builtin_inff();
  auto max = V::set(queries.max[i]);
  for (int64_t j = begin; j < end; j += V::kLanes) max = V::max(V::load(weights + j), max);
  max = V::set(V::largest(max));
  auto sum = V::set(0);
  for (int64_t j = begin; j < end; j += V::kLanes) {
    auto weight = Weights::of(V::sub(V::load(weights + j), max));
    auto kept = Weights::store(stored + j, scales.template with_value<V>(weight, j));
    sum = V::add(sum, std::is_same_v<Scales, NoScales> ? kept : weight);
  }
  auto correction = exp<V>(V::sub(V::set(queries.max[i]), max));
  queries.weight[i] = queries.weight[i] * V::lane0(correction) + V::sum(sum);
  bool same = queries.max[i] == V::lane0(max);
  queries.max[i] = V::lane0(max);
  if (same) return;  // the correction is 1
  float* sums = queries.sums + i * queries.value_width;
  for (int64_t c = 0; c < queries.value_width; c += V::kLanes) {
    V::store(sums + c, V::mul(V::load(sums + c), correction));
  }
}

// What add_values walks over: the values of `range`, and the rows to fetch on the way.
template <class S>
struct ValueRows {
  const S* const* values;
  const S* const* ahead;  // the next tile's keys, of which the first `ahead_count` are set; or null
  KeyRange range;
  int64_t ahead_count;
};

// sums[r][c] += sum over the keys j of the range, ascending, of weights[r][j] * values[j][c], for R
// queries and N units of columns from c on, of which the last holds `left` columns.
template <class V, class S, int R, int N>
[[gnu::always_inline]] inline void add_columns(const ValueRows<S>& rows, int64_t value_dim,
                                               int64_t c, int64_t left, float* sums, int64_t width,
                                               const float* weights) {
  using C = Columns<V, S>;
  typename V::F acc[R][N][C::kPhases];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int p = 0; p < C::kPhases; ++p) {
        acc[r][n][p] = V::load(sums + r * width + c + n * C::kUnit + p * V::kLanes);
      }
    }
  }
  bool fetch = c == 0 && rows.ahead != nullptr;
  for (int64_t j = rows.range.begin; j < rows.range.end; ++j) {
    if (fetch && j < rows.ahead_count) prefetch_row(rows.ahead[j], value_dim);
    const S* row = rows.values[j] + c;
    typename V::F weight[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) weight[r] = V::set(weights[r * kWeightStride + j]);
    auto add = [&]<int P>(int n) __attribute__((always_inline)) {
      const S* unit = forgotten<V>(row + n * C::kUnit);
      auto value = forgotten<V>(N == 1 && left < C::kUnit ? C::template load_first<P>(unit, left)
                                                          : C::template load<P>(unit));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][n][P] = V::fma(weight[r], value, acc[r][n][P]);
    };
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      add.template operator()<0>(n);
      if constexpr (C::kPhases == 2) add.template operator()<1>(n);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int p = 0; p < C::kPhases; ++p) {
        V::store(sums + r * width + c + n * C::kUnit + p * V::kLanes, acc[r][n][p]);
      }
    }
  }
}

// The same over all columns, for `count` in [1, R] queries.
template <class V, class S, int R = V::kTileRows>
inline void add_values(int64_t count, const ValueRows<S>& rows, int64_t value_dim, float* sums,
                       int64_t width, const float* weights) {
  using C = Columns<V, S>;
  // Sums of a whole head of 128 where registers suffice: the weights are loaded once.
  constexpr int kVectors = R <= 2 && V::kLanes == 16 ? 8 : 4;
  constexpr int kUnits = kVectors / C::kPhases;
  if (rows.range.begin >= rows.range.end) return;
  if constexpr (R > 1) {
    if (count < R) {
      return add_values<V, S, R - 1>(count, rows, value_dim, sums, width, weights);
    }
  }
  int64_t c = 0;
  for (; c + kUnits * C::kUnit <= value_dim; c += kUnits * C::kUnit) {
    add_columns<V, S, R, kUnits>(rows, value_dim, c, C::kUnit, sums, width, weights);
  }
  for (; c < value_dim; c += C::kUnit) {
    add_columns<V, S, R, 1>(rows, value_dim, c, value_dim - c, sums, width, weights);
  }
}

// Adds the tile's values to up to kTileRows queries from i on: together where all of them see the
// key, one by one before and after. The first of them fetch the next tile's keys.
template <class V, class S>
inline void add_visible_values(int64_t i, const TileRows<S>& tile, const TileRows<S>& next,
                               int64_t start, int64_t value_dim, Queries& queries) {
  int64_t count = queries.count - i < V::kTileRows ? queries.count - i : V::kTileRows;
  KeyRange common = {0, kTile};
  for (int64_t r = 0; r < count; ++r) {
    KeyRange range = visible(queries, i + r, start);
    if (range.begin > common.begin) common.begin = range.begin;
    if (range.end < common.end) common.end = range.end;
  }
  if (common.end < common.begin) common.end = common.begin;
  int64_t width = queries.value_width;
  auto row = [&](int64_t r) { return queries.sums + r * width; };
  auto each = [&](auto part) {
    for (int64_t r = i; r < i + count; ++r) {
      ValueRows<S> values = {tile.values, nullptr, part(visible(queries, r, start)), 0};
      add_values<V, S, 1>(1, values, value_dim, row(r), width, queries.weights[r]);
    }
  };
  each([&](KeyRange range) {
    return KeyRange{range.begin, range.end < common.begin ? range.end : common.begin};
  });
  ValueRows<S> values = {tile.values, i == 0 ? next.keys : nullptr, common, next.range.end};
  add_values<V, S>(count, values, value_dim, row(i), width, queries.weights[i]);
  each([&](KeyRange range) {
    return KeyRange{range.begin > common.end ? range.begin : common.end, range.end};
  });
}

// What all forms that take keys tile by tile have in common.
struct TileForm {
  using Queries = simd::Queries;
  static constexpr bool kWholeParts = false;
  // A tile costs its reading, and each query's arithmetic.
  static int64_t tile_cost(int64_t queries) { return 8 + queries; }
  static void begin() {}  // on each worker, around its work
  static void end() {}
};

}  // namespace banyan::simd
