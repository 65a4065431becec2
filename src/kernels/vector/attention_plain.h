// Attention in products of f32, over rows of any type.
//
// Rows of codes (kernels/state_rows.h) are multiplied as the codes stand there. A key's scale goes
// into its score, and a value's into the weight that it is multiplied with. Where several groups of
// queries would widen the same codes, the tile is widened to f32 before, which changes no bit.
#pragma once

#include "kernels/state_rows.h"
#include "kernels/vector/attention_tile.h"

namespace banyan::simd {

// The scales of a tile's rows.
struct TileScales {
  alignas(64) float keys[kTile] = {};
  alignas(64) float values[kTile] = {};

  template <class S>
  TileScales(const TileRows<S>& tile, int64_t head_dim, int64_t value_dim) {
    for (int64_t j = tile.range.begin; j < tile.range.end; ++j) {
      keys[j] = row_scale(tile.keys[j], {.width = head_dim}, 0) * kCodeUnit<S>;
      values[j] = row_scale(tile.values[j], {.width = value_dim}, 0) * kCodeUnit<S>;
    }
  }
  template <class V>
  typename V::F with_key(typename V::F scale, int64_t j) const {
    return V::mul(V::load(keys + j), scale);
  }
  template <class V>
  typename V::F with_value(typename V::F weight, int64_t j) const {
    return V::mul(weight, V::load(values + j));
  }
};

// What a form of attention computes with: here products of f32. Its queries stand in q as f32.
template <class V, class S>
struct PlainForm : TileForm {
  using Element = S;                                         // of the pool
  static constexpr int64_t kQueries = 32, kQueriesMin = 32;  // of an item

  static int64_t width(int64_t head_dim) { return working_width<V, S>(head_dim); }
  static int64_t place(int64_t c) { return working_place<V, S>(c); }
  // A tile's codes as f32.
  static int64_t scratch_floats(int64_t width, int64_t value_width) {
    return kIsCode<S> ? kTile * (width + value_width) : 0;
  }

  static void start_query(const float* q, int64_t head_dim, int64_t i, Queries& queries) {
    float* to = queries.q + i * queries.width;
    for (int64_t c = head_dim; c < queries.width; ++c) to[place(c)] = 0;
    for (int64_t c = 0; c < head_dim; ++c) to[place(c)] = q[c];
  }

  // Writes sums in the pool's order of columns.
  static void finish_query(const float* sums, int64_t value_dim, float* out) {
    for (int64_t c = 0; c < value_dim; ++c) out[c] = sums[place(c)];
  }

  // Adds the tile that starts at position `start` to the sums of all queries, and fetches `next`.
  static void attend_tile(const AttentionArgs& a, const TileRows<S>& tile, const TileRows<S>& next,
                          int64_t start, Queries& queries) {
    if constexpr (!kIsCode<S>) {
      attend_rows(a, tile, next, NoScales(), start, queries);
    } else {
      TileScales scales(tile, a.head_dim, a.value_dim);
      if (queries.count <= V::kTileRows) return attend_rows(a, tile, next, scales, start, queries);
      TileRows<float> wide, none;
      none.range = {0, 0};
      widen_tile(a, tile, next, queries, wide);
      attend_rows(a, wide, none, scales, start, queries);
    }
  }

 private:
  template <class Row, class Scales>
  static void attend_rows(const AttentionArgs& a, const TileRows<Row>& tile,
                          const TileRows<Row>& next, const Scales& scales, int64_t start,
                          Queries& queries) {
    score_keys<V, Row>(tile, a.head_dim, queries);
    for (int64_t i = 0; i < queries.count; ++i) {
      KeyRange seen = visible(queries, i, start);
      if (seen.begin < seen.end) weigh_keys<V>(a.scale, a.soft_cap, seen, i, queries, scales);
    }
    for (int64_t i = 0; i < queries.count; i += V::kTileRows) {
      add_visible_values<V, Row>(i, tile, next, start, a.value_dim, queries);
    }
  }

  static void widen_row(const S* row, int64_t width, float* to) {
    for (int64_t c = 0; c < width; c += V::kLanes) {
      V::store(to + c, load_up_to<V>(row + c, width - c));
    }
  }

  // The tile's rows in the form's memory, in the order that codes are multiplied in, so that either
  // gives the same bits. Fetches values while it widens keys, then the next tile's keys.
  static void widen_tile(const AttentionArgs& a, const TileRows<S>& tile, const TileRows<S>& next,
                         const Queries& queries, TileRows<float>& wide) {
    static_assert(Columns<V, S>::kPhases == 1);
    wide.range = tile.range;
    float* keys = queries.scratch;
    float* values = keys + kTile * queries.width;
    for (int64_t j = tile.range.begin; j < tile.range.end; ++j) {
      prefetch_row(tile.values[j], a.value_dim);
      widen_row(tile.keys[j], a.head_dim, keys + j * queries.width);
      wide.keys[j] = keys + j * queries.width;
    }
    for (int64_t j = tile.range.begin; j < tile.range.end; ++j) {
      if (j < next.range.end) prefetch_row(next.keys[j], a.head_dim);
      widen_row(tile.values[j], a.value_dim, values + j * queries.value_width);
      wide.values[j] = values + j * queries.value_width;
    }
  }
};

}  // namespace banyan::simd
