// Attention over pages and the writing of pages; the formulas' sources are in
// portable/attention.cpp.
//
// Up to kQueriesMax queries of one key-value head (rows of a span times the heads of its group) run
// together, so that a tile of keys and values is read once for all of them. The key axis is cut at
// absolute multiples of kTile; within a tile a query takes exactly its visible keys, in ascending
// order, so neither its neighbours nor unwritten memory reach its result.
#pragma once

#include "kernels/launch.h"
#include "kernels/x86/dot.h"
#include "tensor/float_types.h"

namespace banyan::x86 {

constexpr int64_t kTile = 64;
constexpr int64_t kQueriesMax = 32;
constexpr float kLowest = -0x1.fffffep+127f;

// Queries of one key-value head. Their weighted sums of values grow in place, in `out`.
struct Queries {
  int64_t count;
  const float* q[kQueriesMax];     // [head_dim] each
  float* out[kQueriesMax];         // [head_dim] each
  int64_t first_key[kQueriesMax];  // the visible keys: positions [first_key, end_key)
  int64_t end_key[kQueriesMax];
  float max[kQueriesMax];  // of the scores so far, and the sum of exp(score - max)
  float sum[kQueriesMax];
  float weights[kQueriesMax][kTile];  // of the current tile's keys: first scores, then exp
};

// The part [begin, end) of the current tile, in keys from the tile's start.
struct KeyRange {
  int64_t begin, end;
};

// Where the keys and values of a tile are.
template <class S>
struct TileRows {
  KeyRange range;  // of the entries that are set
  const S* keys[kTile];
  const S* values[kTile];
};

static inline int64_t clamp_to_tile(int64_t key) {
  return key < 0 ? 0 : (key > kTile ? kTile : key);
}

static inline KeyRange visible(const Queries& queries, int64_t i, int64_t tile) {
  return {clamp_to_tile(queries.first_key[i] - tile), clamp_to_tile(queries.end_key[i] - tile)};
}

// Query `first + i` of a span and head is row (first + i) / group, head (first + i) % group of it.
static inline void start_queries(const AttentionArgs& a, const SpanArgs& span, int64_t kv_head,
                                 int64_t first, int64_t count, Queries& queries) {
  int64_t group = a.q_heads / a.kv_heads;
  queries.count = count;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = (first + i) / group;
    int64_t head = kv_head * group + (first + i) % group;
    int64_t position = span.first_position + row;
    queries.q[i] = a.q + (span.row_begin + row) * a.q_row_stride + head * a.head_dim;
    queries.out[i] = a.out + ((span.row_begin + row) * a.q_heads + head) * a.head_dim;
    queries.first_key[i] = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
    queries.end_key[i] = position + 1;
    queries.max[i] = kLowest;
    queries.sum[i] = 0;
    for (int64_t c = 0; c < a.head_dim; ++c) queries.out[i][c] = 0;
  }
}

// Starts to load a row into the cache.
template <class S>
static inline void prefetch_row(const S* row, int64_t head_dim) {
  constexpr int64_t kPerLine = 64 / sizeof(S);
  for (int64_t c = 0; c < head_dim; c += kPerLine) __builtin_prefetch(row + c);
}

// weights[i][j] = scale * q_i . k_j for the tile's keys, whether or not visible to query i. On the
// way the next tile is fetched: a quarter off the time of decoding from a long context.
template <class V, class S>
inline void score_keys(const AttentionArgs& a, const TileRows<S>& tile, const TileRows<S>& next,
                       Queries& queries) {
  KeyRange range = tile.range;
  for (int64_t j = range.begin; j < range.end; j += kTileOutputs) {
    const S* k[kTileOutputs];
    int64_t count = range.end - j < kTileOutputs ? range.end - j : kTileOutputs;
    for (int64_t b = 0; b < kTileOutputs; ++b) {
      int64_t key = j + (b < count ? b : count - 1);
      k[b] = tile.keys[key];
      if (key < next.range.end) {
        prefetch_row(next.keys[key], a.head_dim);
        prefetch_row(next.values[key], a.head_dim);
      }
    }
    for (int64_t i = 0; i < queries.count; i += V::kTileRows) {
      float scores[V::kTileRows][kTileOutputs];
      int64_t rows = queries.count - i < V::kTileRows ? queries.count - i : V::kTileRows;
      dot_tile_of<V, S>(rows, queries.q + i, k, a.head_dim, scores);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < count; ++b) queries.weights[i + r][j + b] = scores[r][b] * a.scale;
      }
    }
  }
}

// Turns the tile's scores of query i into weights exp(score - max), zero for the keys that it does
// not see, and brings what was summed before to the new maximum.
template <class V>
inline void weigh_keys(int64_t head_dim, KeyRange range, int64_t i, Queries& queries) {
  float* weights = queries.weights[i];
  // Whole vectors around the visible keys; what lies further out would add nothing.
  int64_t begin = range.begin / V::kLanes * V::kLanes;
  int64_t end = (range.end + V::kLanes - 1) / V::kLanes * V::kLanes;
  for (int64_t j = begin; j < range.begin; ++j) weights[j] = -__builtin_inff();
  for (int64_t j = range.end; j < end; ++j) weights[j] = -__builtin_inff();
  auto max = V::set(queries.max[i]);
  for (int64_t j = begin; j < end; j += V::kLanes) max = V::max(V::load(weights + j), max);
  max = V::set(V::largest(max));
  auto correction = exp<V>(V::sub(V::set(queries.max[i]), max));
  auto sum = V::set(0);
  for (int64_t j = begin; j < end; j += V::kLanes) {
    auto weight = exp<V>(V::sub(V::load(weights + j), max));
    V::store(weights + j, weight);
    sum = V::add(sum, weight);
  }
  queries.sum[i] = queries.sum[i] * V::lane0(correction) + V::sum(sum);
  queries.max[i] = V::lane0(max);
  for (int64_t c = 0; c < head_dim; c += V::kLanes) {
    float* out = queries.out[i] + c;
    store_up_to<V>(out, head_dim - c, V::mul(load_up_to<V>(out, head_dim - c), correction));
  }
}

// out[r][c] += sum over the keys j of `range`, ascending, of weights[r][j] * values[j][c], for R
// queries and N vectors of columns from c on, of which the last holds `lanes` columns.
template <class V, int R, int N, class S>
inline void add_columns(const S* const* values, KeyRange range, int64_t c, int64_t lanes,
                        float* const* out, const float (*weights)[kTile]) {
  typename V::F acc[R][N];
  auto load = [&](auto* p, int n) {
    return n == N - 1 ? load_up_to<V>(p + n * V::kLanes, lanes) : V::load(p + n * V::kLanes);
  };
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) acc[r][n] = load(out[r] + c, n);
  }
  for (int64_t j = range.begin; j < range.end; ++j) {
    typename V::F value[N];
    for (int n = 0; n < N; ++n) value[n] = load(values[j] + c, n);
    for (int r = 0; r < R; ++r) {
      auto weight = V::set(weights[r][j]);
      for (int n = 0; n < N; ++n) acc[r][n] = V::fma(weight, value[n], acc[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N - 1; ++n) V::store(out[r] + c + n * V::kLanes, acc[r][n]);
    store_up_to<V>(out[r] + c + (N - 1) * V::kLanes, lanes, acc[r][N - 1]);
  }
}

// The same over all columns, for `rows` in [1, R] queries.
template <class V, class S, int R = V::kTileRows>
inline void add_values(int64_t rows, const S* const* values, KeyRange range, int64_t head_dim,
                       float* const* out, const float (*weights)[kTile]) {
  constexpr int kVectors = 4;
  if (range.begin >= range.end) return;
  if constexpr (R > 1) {
    if (rows < R) return add_values<V, S, R - 1>(rows, values, range, head_dim, out, weights);
  }
  int64_t c = 0;
  for (; c + kVectors * V::kLanes <= head_dim; c += kVectors * V::kLanes) {
    add_columns<V, R, kVectors>(values, range, c, V::kLanes, out, weights);
  }
  for (; c < head_dim; c += V::kLanes) {
    int64_t lanes = head_dim - c < V::kLanes ? head_dim - c : V::kLanes;
    add_columns<V, R, 1>(values, range, c, lanes, out, weights);
  }
}

// Adds the tile's values to `rows` queries from i on: together where all of them see the key, one
// by one before and after.
template <class V, class S>
inline void add_visible_values(int64_t i, int64_t rows, const S* const* values, int64_t tile,
                               int64_t head_dim, Queries& queries) {
  KeyRange common = {0, kTile};
  for (int64_t r = 0; r < rows; ++r) {
    KeyRange range = visible(queries, i + r, tile);
    if (range.begin > common.begin) common.begin = range.begin;
    if (range.end < common.end) common.end = range.end;
  }
  if (common.end < common.begin) common.end = common.begin;
  auto each = [&](auto part) {
    for (int64_t r = 0; r < rows; ++r) {
      add_values<V, S, 1>(1, values, part(visible(queries, i + r, tile)), head_dim,
                          queries.out + i + r, queries.weights + i + r);
    }
  };
  each([&](KeyRange range) {
    return KeyRange{range.begin, range.end < common.begin ? range.end : common.begin};
  });
  add_values<V, S>(rows, values, common, head_dim, queries.out + i, queries.weights + i);
  each([&](KeyRange range) {
    return KeyRange{range.begin > common.end ? range.begin : common.end, range.end};
  });
}

// The rows of the keys of `range` in the tile that starts at position `start`.
template <class V, class S>
inline void locate(const AttentionArgs& a, const SpanArgs& span, int64_t kv_head, int64_t start,
                   KeyRange range, TileRows<S>& tile) {
  tile.range = range;
  for (int64_t j = range.begin; j < range.end;) {
    // The rows of one page follow each other.
    int64_t in_page = a.page_size - (start + j) % a.page_size;
    int64_t end = range.end - j < in_page ? range.end : j + in_page;
    int64_t offset =
        pool_offset(a.page_table, span, start + j, kv_head, a.kv_heads, a.page_size, a.head_dim);
    for (; j < end; ++j, offset += a.head_dim) {
      tile.keys[j] = static_cast<const S*>(a.k_pool) + offset;
      tile.values[j] = static_cast<const S*>(a.v_pool) + offset;
    }
  }
}

template <class V, class S>
inline void attend_tile(const AttentionArgs& a, int64_t start, const TileRows<S>& tile,
                        const TileRows<S>& next, Queries& queries) {
  score_keys<V, S>(a, tile, next, queries);
  for (int64_t i = 0; i < queries.count; ++i) {
    KeyRange seen = visible(queries, i, start);
    if (seen.begin < seen.end) weigh_keys<V>(a.head_dim, seen, i, queries);
  }
  for (int64_t i = 0; i < queries.count; i += V::kTileRows) {
    int64_t rows = queries.count - i < V::kTileRows ? queries.count - i : V::kTileRows;
    add_visible_values<V, S>(i, rows, tile.values, start, a.head_dim, queries);
  }
}

template <class V, class S>
inline void attend(const AttentionArgs& a, const SpanArgs& span, int64_t kv_head, int64_t first,
                   int64_t count) {
  Queries queries;
  start_queries(a, span, kv_head, first, count, queries);
  int64_t first_key = queries.first_key[0], end_key = queries.end_key[count - 1];
  TileRows<S> tiles[2];
  auto locate_from = [&](int64_t start, TileRows<S>& tile) {
    KeyRange range = {clamp_to_tile(first_key - start), clamp_to_tile(end_key - start)};
    locate<V, S>(a, span, kv_head, start, range, tile);
  };
  int64_t start = first_key / kTile * kTile;
  locate_from(start, tiles[0]);
  for (int64_t t = 0; start < end_key; ++t, start += kTile) {
    locate_from(start + kTile, tiles[(t + 1) % 2]);  // nothing, after the last tile
    attend_tile<V, S>(a, start, tiles[t % 2], tiles[(t + 1) % 2], queries);
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < a.head_dim; ++c) queries.out[i][c] /= queries.sum[i];
  }
}

// Items are blocks of queries of one span and head. Later blocks of a span see more keys, so the
// workers take them in turn.
template <class V, class S>
void attend_all(const AttentionArgs& a) {
  int64_t group = a.q_heads / a.kv_heads;
  parallel_interleaved(a.launch, [&](int64_t next, int64_t step) {
    int64_t item = 0;
    for (int64_t s = 0; s < a.span_count; ++s) {
      int64_t queries = a.spans[s].row_count * group;
      int64_t blocks = (queries + kQueriesMax - 1) / kQueriesMax;
      for (; next < item + blocks * a.kv_heads; next += step) {
        int64_t first = (next - item) / a.kv_heads * kQueriesMax;
        int64_t count = queries - first < kQueriesMax ? queries - first : kQueriesMax;
        attend<V, S>(a, a.spans[s], (next - item) % a.kv_heads, first, count);
      }
      item += blocks * a.kv_heads;
    }
  });
}

template <class V>
void attention(const AttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all<V, BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return attend_all<V, Float16>(a);
  attend_all<V, float>(a);
}

template <class V, class S>
void write_pages(const PageWriteArgs& a) {
  int64_t rows = span_rows(a.spans, a.span_count);
  parallel_for(a.launch, rows, rows_per_job(a.heads * a.width), [&](int64_t begin, int64_t end) {
    for_span_rows(a.spans, a.span_count, begin, end, [&](const SpanArgs& span, int64_t i) {
      for (int64_t head = 0; head < a.heads; ++head) {
        const float* x = a.x + (span.row_begin + i) * a.x_row_stride + head * a.width;
        S* to = static_cast<S*>(a.pool) + pool_offset(a.page_table, span, span.first_position + i,
                                                      head, a.heads, a.page_size, a.width);
        for (int64_t c = 0; c < a.width; c += V::kLanes) {
          store_up_to<V>(to + c, a.width - c, load_up_to<V>(x + c, a.width - c));
        }
      }
    });
  });
}

template <class V>
void page_write(const PageWriteArgs& a) {
  if (a.pool_dtype == DType::kBF16) return write_pages<V, BFloat16>(a);
  if (a.pool_dtype == DType::kF16) return write_pages<V, Float16>(a);
  write_pages<V, float>(a);
}

}  // namespace banyan::x86
