// Attention over latents that all heads share; the formulas' sources are in
// portable/latent_attention.cpp.
//
// The queries of some heads of one row run together: they see the same keys, so a tile of latents
// is scored by one matrix product and summed by another. The key axis is cut at absolute multiples
// of kLatentTile, within a tile a query's sums run in the order of the keys, and they restart from
// part to part as split_keys.h says. So a result depends neither on its neighbours nor on how the
// work was divided.
#pragma once

#include "kernels/vector/latent_tile.h"
#include "kernels/vector/split_keys.h"

namespace banyan::simd {

// The parts of the keys of row i of a span.
static inline int64_t latent_parts(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i) {
  return (latent_keys(a, span, i) + kPart - 1) / kPart;
}

// The number of rows, starting at some row, to process together, and whether one worker processes
// them completely.
struct LatentRows {
  int64_t count;
  bool whole;
};

// Heads [head, head + count) of rows [i, i + rows) of a span. Rows with selected keys have an item
// each.
struct LatentItem {
  const SpanArgs* span;
  int64_t i, rows;
  int64_t head, count;
  int64_t row_lanes;  // places for the sums of a row's heads, count or more
  bool whole;
  int64_t keys;   // of the last row
  int64_t start;  // the work of all items before it, in parts of one row

  int64_t row() const { return span->row_begin + i; }
  int64_t lanes() const { return rows * row_lanes; }
  int64_t end_key() const { return keys; }
  static int64_t first_part() { return 0; }
  int64_t end_part() const { return (keys + kPart - 1) / kPart; }
  int64_t start_of(int64_t part) const { return whole ? start : start + part * rows; }
  static bool carried() { return false; }
};

static inline int64_t latent_work(const LatentAttentionArgs& a, const LatentItem& item) {
  if (!item.whole) return item.rows * item.end_part();
  int64_t sum = 0;
  for (int64_t r = 0; r < item.rows; ++r) sum += latent_parts(a, *item.span, item.i + r);
  return sum;
}

// The heads of a row are divided into runs, one item each.
struct LatentShares : KeyShares {
  int64_t runs;
};

// Points the queries of an item at their sums, which are still empty.
static inline void start_part(const LatentItem& item, const PartialSums& to,
                              LatentQueries& queries) {
  for (int64_t n = 0; n < item.count; ++n) {
    queries.out[n] = to.sums + n * to.width;
    queries.max[n] = kLowest;
    queries.sum[n] = 0;
    for (int64_t c = 0; c < to.width; ++c) queries.out[n][c] = 0;
  }
}

static inline void end_part(const LatentItem& item, const LatentQueries& queries,
                            const PartialSums& to) {
  for (int64_t n = 0; n < item.count; ++n) {
    to.max[n] = queries.max[n];
    to.weight[n] = queries.sum[n];
  }
}

static inline void start_queries(const LatentAttentionArgs& a, const LatentItem& item,
                                 LatentQueries& queries) {
  queries.count = item.count;
  for (int64_t n = 0; n < item.count; ++n) {
    queries.q[n] = a.q + item.row() * a.q_row_stride + (item.head + n) * a.width;
  }
}

// Calls body(tile, next) for the tiles of a part that the item sees. `next` is the following tile,
// also across parts, for prefetching.
template <class S, class Body>
inline void for_latent_tiles(const LatentAttentionArgs& a, const LatentItem& item, int64_t part,
                             const Body& body) {
  int64_t end = item.end_key(), start = part * kPart;
  int64_t part_end = start + kPart < end ? start + kPart : end;
  LatentTile<S> tiles[2];
  locate_latents(a, *item.span, item.i, start, end, tiles[0]);
  for (int64_t t = 0; start < part_end; ++t, start += kLatentTile) {
    LatentTile<S>& next = tiles[(t + 1) % 2];
    locate_latents(a, *item.span, item.i, start + kLatentTile, end, next);
    body(tiles[t % 2], next);
  }
}

// Writes the results of an item, whose sums are complete.
template <class Form>
inline void write_latents(const LatentAttentionArgs& a, const LatentItem& item,
                          const PartialSums& total) {
  for (int64_t n = 0; n < item.lanes(); ++n) {
    int64_t row = item.row() + n / item.row_lanes, lane = n % item.row_lanes;
    if (lane >= item.count) continue;
    Form::write(total.sums + n * total.width, total.weight[n], a.rank,
                a.out + (row * a.heads + item.head + lane) * a.rank);
  }
}

// What the vector forms have in common: they process rows one by one.
template <class V>
struct LatentVectors {
  using Vec = V;
  static constexpr int64_t kHeadUnit = 1;
  static constexpr int64_t kHeadsMax = kLatentQueriesMax;

  static int64_t scratch_floats(const LatentAttentionArgs&) { return 0; }
  LatentVectors(const LatentAttentionArgs&, float* memory) : scratch(memory) {}

  float* scratch;

  static LatentRows rows_at(const LatentAttentionArgs&, const LatentShares&, const SpanArgs&,
                            int64_t, int64_t) {
    return {.count = 1, .whole = false};
  }
};

// The arithmetic in f32, over latents of type S.
template <class V, class S>
struct LatentFloats : LatentVectors<V> {
  using LatentVectors<V>::LatentVectors;
  LatentQueries queries;

  static int64_t scratch_floats(const LatentAttentionArgs& a) {
    return kIsCode<S> ? kLatentTile * widened_width<V>(a) : 0;
  }
  void start(const LatentAttentionArgs& a, const LatentItem& item) {
    start_queries(a, item, queries);
  }
  void attend(const LatentAttentionArgs& a, const LatentItem& item, int64_t part,
              const PartialSums& to) {
    start_part(item, to, queries);
    for_latent_tiles<S>(a, item, part, [&](const LatentTile<S>& tile, const LatentTile<S>& next) {
      if constexpr (kIsCode<S>) {
        LatentTile<float> wide, none;
        none.count = 0;
        widen_latents<V>(a, tile, next, this->scratch, wide);
        attend_rows(a, wide, none);
      } else {
        attend_rows(a, tile, next);
      }
    });
    end_part(item, queries, to);
  }
  // out = sums / weight
  static void write(const float* sums, float weight, int64_t rank, float* out) {
    for (int64_t c = 0; c < rank; ++c) out[c] = sums[c] / weight;
  }

 private:
  template <class Row>
  void attend_rows(const LatentAttentionArgs& a, const LatentTile<Row>& tile,
                   const LatentTile<Row>& next) {
    score_latents<V, Row>(a, tile, next, queries);
    for (int64_t n = 0; n < queries.count; ++n) weigh_latents<V>(a.rank, tile.count, n, queries);
    add_latents<V, Row>(a.rank, tile, queries);
  }
};

// Calls body(item) for all items in order and returns the work of all.
template <class Form, class Body>
inline int64_t for_latent_items(const LatentAttentionArgs& a, const LatentShares& shares,
                                const Body& body) {
  constexpr int64_t kUnit = Form::kHeadUnit;
  int64_t work = 0, units = (a.heads + kUnit - 1) / kUnit;
  for (const SpanArgs* span = a.spans; span < a.spans + a.span_count; ++span) {
    for (int64_t i = 0; i < span->row_count;) {
      LatentRows rows = Form::rows_at(a, shares, *span, i, work);
      for (int64_t run = 0; run < shares.runs; ++run) {
        int64_t begin = units * run / shares.runs, end = units * (run + 1) / shares.runs;
        int64_t head = begin * kUnit,
                count = end * kUnit < a.heads ? (end - begin) * kUnit : a.heads - head;
        LatentItem item = {.span = span,
                           .i = i,
                           .rows = rows.count,
                           .head = head,
                           .count = count,
                           .row_lanes = (end - begin) * kUnit,
                           .whole = rows.whole,
                           .keys = latent_keys(a, *span, i + rows.count - 1),
                           .start = work};
        body(item);
        work += latent_work(a, item);
      }
      i += rows.count;
    }
  }
  return work;
}

template <class Form>
inline LatentShares share_latents(const LatentAttentionArgs& a) {
  constexpr int64_t kUnit = Form::kHeadUnit;
  LatentShares shares = {{0, a.launch.threads ? a.launch.threads->size() : 1},
                         (a.heads + Form::kHeadsMax - 1) / Form::kHeadsMax};
  auto work_of = [&](int64_t runs) {
    LatentShares unknown = {{0, shares.workers}, runs};
    return for_latent_items<Form>(a, unknown, [](const LatentItem&) {});
  };
  shares.work = work_of(shares.runs);
  // Few parts divide unevenly; a short context's heads are divided instead.
  constexpr int64_t kPartsMin = 4;  // for each worker
  int64_t rows = span_rows(a.spans, a.span_count), units = (a.heads + kUnit - 1) / kUnit;
  if (rows * shares.runs >= shares.workers || shares.work >= kPartsMin * shares.workers) {
    return shares;
  }
  shares.runs = rows > 0 ? (shares.workers + rows - 1) / rows : shares.runs;
  if (shares.runs > units) shares.runs = units;
  shares.work = work_of(shares.runs);
  return shares;
}

// A worker's state: a form and its memory.
template <class Form>
class LatentWorker {
 public:
  using Args = LatentAttentionArgs;
  using Item = LatentItem;
  using Shares = LatentShares;
  using Vec = typename Form::Vec;
  static constexpr int64_t kLanesMax = Form::kHeadsMax;

  static int64_t sums_width(const LatentAttentionArgs& a) {
    return (a.rank + PartialSums::kPad - 1) / PartialSums::kPad * PartialSums::kPad;
  }
  static int64_t scratch_floats(const LatentAttentionArgs& a) { return Form::scratch_floats(a); }
  template <class Body>
  static int64_t for_items(const LatentAttentionArgs& a, const LatentShares& shares,
                           const Body& body) {
    return for_latent_items<Form>(a, shares, body);
  }

  LatentWorker(const LatentAttentionArgs& a, float* memory) : a_(a), form_(a, memory) {}

  KeyRange keys_of(const LatentItem& item, int64_t n) const {
    return {.begin = 0, .end = latent_keys(a_, *item.span, item.i + n / item.row_lanes)};
  }
  void start(const LatentItem& item) { form_.start(a_, item); }
  void attend(const LatentItem& item, int64_t part, const PartialSums& to) {
    form_.attend(a_, item, part, to);
  }
  void attend_whole(const LatentItem& item)
    requires requires(Form& form) { form.attend_whole(item); }
  {
    form_.start(a_, item);
    form_.attend_whole(item);
  }
  void resume(const LatentItem&, const PartialSums&) const {}
  void finish(const LatentItem& item, const PartialSums& total) const {
    write_latents<Form>(a_, item, total);
  }

 private:
  const LatentAttentionArgs& a_;
  Form form_;
};

template <class Form>
void attend_all_latents(const LatentAttentionArgs& a) {
  attend_split<LatentWorker<Form>>(a, share_latents<Form>(a));
}

template <class V>
void latent_attention(const LatentAttentionArgs& a) {
  if (a.pool_dtype == DType::kBF16) return attend_all_latents<LatentFloats<V, BFloat16>>(a);
  if (a.pool_dtype == DType::kF16) return attend_all_latents<LatentFloats<V, Float16>>(a);
  if (a.pool_dtype == DType::kI8) return attend_all_latents<LatentFloats<V, int8_t>>(a);
  if (a.pool_dtype == DType::kF8E4M3) return attend_all_latents<LatentFloats<V, Float8E4M3>>(a);
  attend_all_latents<LatentFloats<V, float>>(a);
}

}  // namespace banyan::simd
