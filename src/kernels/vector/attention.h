// Attention over pages and the writing of pages; the formulas' sources are in
// portable/attention.cpp.
//
// Up to Form::kQueries queries of one key-value head (rows of a span times the heads of its group)
// run together, so that a tile of keys and values is read once for all of them. The key axis is cut
// at absolute multiples of kTile, and sums restart at absolute multiples of kPart: a query's
// parts are merged in ascending order, whether one worker computed them or several. Within a tile a
// query takes exactly its visible keys, in ascending order, so neither its neighbours nor unwritten
// memory reach its result.
//
// Of rows that look at selected keys, each has items of its own, in which ranks stand in the place
// of positions; or they are gathered (attention_blocks.h).
#pragma once

#include "kernels/portable/portable.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "kernels/vector/attention_plain.h"
#include "kernels/vector/split_keys.h"

namespace banyan::simd {

constexpr int64_t kTilesPerPart = kPart / kTile;

constexpr int64_t kGatheredMin = 8;        // rows of a span: fewer are taken one by one
constexpr int64_t kGatheredGroupMax = 32;  // queries of a head, which every form takes at once

// A block of queries of one span and head, and its place in the launch's work.
struct AttentionItem {
  const SpanArgs* span;
  int64_t kv_head, first, count;  // query first + i is row (first + i) / group of the span
  KeyBlock block;                 // what this launch looks at
  int64_t first_key, end_key;     // of it, visible to any of the queries
  int64_t tile_cost;
  int64_t start, cost;  // the work of all items before it, and its own

  int64_t lanes() const { return count; }
  bool carried() const { return block.begin > 0; }
  int64_t first_part() const { return first_key / kPart; }
  int64_t end_part() const { return (end_key + kPart - 1) / kPart; }
  int64_t start_of(int64_t part) const {
    int64_t first_tile = first_key / kTile, tile = part * kTilesPerPart;
    return start + (tile > first_tile ? tile - first_tile : 0) * tile_cost;
  }
};

// The queries of an item: as many as the form takes, or fewer if workers would have few items.
template <class Form>
inline int64_t queries_per_item(const AttentionArgs& a) {
  constexpr int64_t kItems = 4;  // for each worker
  int64_t workers = a.launch.threads == nullptr ? 1 : a.launch.threads->size();
  int64_t queries = Form::kQueries;
  for (; queries > Form::kQueriesMin && workers > 1; queries /= 2) {
    int64_t items = 0;
    for (int64_t s = 0; s < a.span_count; ++s) {
      items += (a.spans[s].row_count * (a.q_heads / a.kv_heads) + queries - 1) / queries;
    }
    if (items * a.kv_heads >= workers * kItems) break;
  }
  return queries;
}

// Whether the rows of a span are gathered by the parts of the keys that they selected.
static inline bool gathers_rows(const AttentionArgs& a, const SpanArgs& span) {
  return a.selected.runs != nullptr && a.selected.alignment % kPart == 0 &&
         span.row_count >= kGatheredMin && a.q_heads / a.kv_heads <= kGatheredGroupMax;
}

// The items of queries [first, first + count) of a span, one for each head.
template <class Form, class Body>
static inline void for_head_items(const AttentionArgs& a, const SpanArgs& span, KeyBlock block,
                                  int64_t first, int64_t count, int64_t& start, const Body& body) {
  int64_t group = a.q_heads / a.kv_heads, position = span.first_position + first / group;
  int64_t window_begin = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
  int64_t first_key = a.blocks != nullptr ? block.begin : window_begin;
  int64_t end_key = span.first_position + (first + count - 1) / group + 1;
  if (end_key > block.end) end_key = block.end;
  for (int64_t head = 0; head < a.kv_heads; ++head) {
    if (a.selected.runs != nullptr) {
      end_key = selected_row(a.selected, span.row_begin + first / group, head).key_count;
    }
    int64_t tiles = (end_key + kTile - 1) / kTile - first_key / kTile;
    int64_t cost = Form::tile_cost(count);
    AttentionItem item = {&span,     head,    first, count, block,
                          first_key, end_key, cost,  start, tiles * cost};
    body(item);
    start += item.cost;
  }
}

// Calls body(item) for all items in order and returns the work of all.
template <class Form, class Body>
static inline int64_t for_items(const AttentionArgs& a, const Body& body) {
  int64_t group = a.q_heads / a.kv_heads, start = 0, count_max = queries_per_item<Form>(a);
  for (int64_t s = 0; s < a.span_count; ++s) {
    const SpanArgs& span = a.spans[s];
    if (gathers_rows(a, span)) continue;
    KeyBlock block = a.blocks != nullptr ? a.blocks[s] : KeyBlock{0, INT32_MAX};
    int64_t queries = span.row_count * group;
    int64_t skipped = block.begin > span.first_position ? block.begin - span.first_position : 0;
    for (int64_t first = skipped * group; first < queries;) {
      int64_t end = a.selected.runs != nullptr ? (first / group + 1) * group : queries;
      int64_t count = end - first < count_max ? end - first : count_max;
      for_head_items<Form>(a, span, block, first, count, start, body);
      first += count;
    }
  }
  return start;
}

// The keys that the query of `row` of the item's span sees.
static inline KeyRange seen_keys(const AttentionArgs& a, const AttentionItem& item, int64_t row) {
  if (a.selected.runs != nullptr) {
    return {0, selected_row(a.selected, item.span->row_begin + row, item.kv_head).key_count};
  }
  int64_t position = item.span->first_position + row;
  return {.begin = a.window > 0 && position >= a.window ? position - a.window + 1 : 0,
          .end = position < item.block.end ? position + 1 : item.block.end};
}

template <class Form>
inline void start_queries(const AttentionArgs& a, const AttentionItem& item,
                          typename Form::Queries& queries) {
  int64_t group = a.q_heads / a.kv_heads;
  queries.count = item.count;
  for (int64_t i = 0; i < item.count; ++i) {
    int64_t row = (item.first + i) / group;
    int64_t head = item.kv_head * group + (item.first + i) % group;
    const float* q = a.q + (item.span->row_begin + row) * a.q_row_stride + head * a.head_dim;
    Form::start_query(q, a.head_dim, i, queries);
    KeyRange seen = seen_keys(a, item, row);
    queries.first_key[i] = seen.begin;
    queries.end_key[i] = seen.end;
  }
}

// The number of keys from rank `rank` on with consecutive positions, and the first position.
struct KeyStretch {
  int64_t position, count;
};
static inline KeyStretch stretch_at(const AttentionArgs& a, const AttentionItem& item,
                                    int64_t rank) {
  if (a.selected.runs == nullptr) return {rank, INT64_MAX};
  int64_t row = item.span->row_begin + item.first / (a.q_heads / a.kv_heads);
  SelectedRow selected = selected_row(a.selected, row, item.kv_head);
  int64_t run = selected.run_of(rank);
  return {selected.position(run, rank), selected.end_rank(run) - rank};
}

// The rows of the keys of `range` in the tile, or the part, that starts at rank `start`.
template <class Rows>
inline void locate(const AttentionArgs& a, const AttentionItem& item, int64_t start, KeyRange range,
                   Rows& tile) {
  using S = typename Rows::Element;
  int64_t key_stride = row_stride<S>({.width = a.head_dim});
  int64_t value_stride = row_stride<S>({.width = a.value_dim});
  tile.range = range;
  for (int64_t j = range.begin; j < range.end;) {
    // Rows of one page are contiguous.
    KeyStretch keys = stretch_at(a, item, start + j);
    int64_t in_page = a.page_size - keys.position % a.page_size;
    int64_t count = keys.count < in_page ? keys.count : in_page;
    int64_t end = range.end - j < count ? range.end : j + count;
    int64_t row = pool_offset(a.page_table, *item.span, keys.position, item.kv_head, a.kv_heads,
                              a.page_size, 1);
    for (; j < end; ++j, ++row) {
      tile.keys[j] = static_cast<const S*>(a.k_pool) + row * key_stride;
      tile.values[j] = static_cast<const S*>(a.v_pool) + row * value_stride;
    }
  }
}

// The sums of all queries over the keys of `part`.
template <class Form>
inline void attend_part(const AttentionArgs& a, const AttentionItem& item, int64_t part,
                        Queries& queries) {
  for (int64_t i = 0; i < queries.count; ++i) {
    queries.max[i] = kLowest;
    queries.weight[i] = 0;
  }
  for (int64_t c = 0; c < queries.count * queries.value_width; ++c) queries.sums[c] = 0;
  int64_t first_key = item.first_key > part * kPart ? item.first_key : part * kPart;
  int64_t end_key = item.end_key < (part + 1) * kPart ? item.end_key : (part + 1) * kPart;
  using Tile = TileRows<typename Form::Element>;
  Tile tiles[2];
  auto locate_from = [&](int64_t start, Tile& tile) {
    KeyRange range = {clamp_to_tile(first_key - start), clamp_to_tile(item.end_key - start)};
    locate(a, item, start, range, tile);
  };
  int64_t start = first_key / kTile * kTile;
  locate_from(start, tiles[0]);
  for (int64_t t = 0; start < end_key; ++t, start += kTile) {
    // Also the first tile of the next part, for prefetching; nothing after the last part.
    Tile& next = tiles[(t + 1) % 2];
    locate_from(start + kTile, next);
    Form::attend_tile(a, tiles[t % 2], next, start, queries);
  }
}

// Where query i of an item stands among [rows, q_heads].
static inline int64_t place_of(const AttentionArgs& a, const AttentionItem& item, int64_t i) {
  int64_t group = a.q_heads / a.kv_heads, row = item.span->row_begin + (item.first + i) / group;
  return row * a.q_heads + item.kv_head * group + (item.first + i) % group;
}

// Loads the sums that launches over earlier blocks stored.
template <class Form>
inline void resume(const AttentionArgs& a, const AttentionItem& item, const PartialSums& total) {
  int64_t width = total.width;
  for (int64_t i = 0; i < item.count; ++i) {
    int64_t place = place_of(a, item, i);
    total.max[i] = a.max[place];
    total.weight[i] = a.weight[place];
    float* sums = total.sums + i * width;
    for (int64_t c = a.value_dim; c < width; ++c) sums[Form::place(c)] = 0;
    for (int64_t c = 0; c < a.value_dim; ++c) {
      sums[Form::place(c)] = a.out[place * a.value_dim + c];
    }
  }
}

// Divides the sums by the weights, to which a sink adds its own, and writes them; or leaves them to
// the launch over the next block.
template <class V, class Form>
inline void finish(const AttentionArgs& a, const AttentionItem& item, const PartialSums& total) {
  int64_t group = a.q_heads / a.kv_heads, width = total.width;
  for (int64_t i = 0; i < item.count; ++i) {
    int64_t place = place_of(a, item, i), head = place % a.q_heads;
    float* out = a.out + place * a.value_dim;
    float* sums = total.sums + i * width;
    if (item.span->first_position + (item.first + i) / group >= item.block.end) {
      a.max[place] = total.max[i];
      a.weight[place] = total.weight[i];
      Form::finish_query(sums, a.value_dim, out);
      continue;
    }
    auto weight = V::set(total.weight[i]);
    if (a.sinks != nullptr) {
      auto sink = V::set(a.sinks[head]), own = V::set(total.max[i]);
      auto max = V::max(sink, own);
      auto correction = exp<V>(V::sub(own, max));
      weight = V::fma(weight, correction, exp<V>(V::sub(sink, max)));
      for (int64_t c = 0; c < width; c += V::kLanes) {
        V::store(sums + c, V::mul(V::load(sums + c), correction));
      }
    }
    auto inverse = V::div(V::set(1.0f), weight);
    for (int64_t c = 0; c < width; c += V::kLanes) {
      V::store(sums + c, V::mul(V::load(sums + c), inverse));
    }
    Form::finish_query(sums, a.value_dim, out);
  }
}

// A worker's state: queries, and the form's memory.
template <class V, class Form>
class AttentionWorker {
 public:
  using Args = AttentionArgs;
  using Item = AttentionItem;
  using Shares = KeyShares;
  using Vec = V;
  static constexpr int64_t kLanesMax = Form::kQueries;

  static int64_t sums_width(const AttentionArgs& a) { return Form::width(a.value_dim); }
  static int64_t scratch_floats(const AttentionArgs& a) {
    int64_t width = Form::width(a.head_dim);
    return Form::kQueries * width + Form::scratch_floats(width, sums_width(a));
  }
  template <class Body>
  static int64_t for_items(const AttentionArgs& a, const KeyShares&, const Body& body) {
    return simd::for_items<Form>(a, body);
  }

  AttentionWorker(const AttentionArgs& args, float* memory) : a_(args) {
    queries_.width = Form::width(a_.head_dim);
    queries_.value_width = sums_width(a_);
    queries_.q = memory;
    queries_.scratch = memory + Form::kQueries * queries_.width;
    Form::begin();
  }
  ~AttentionWorker() { Form::end(); }
  AttentionWorker(const AttentionWorker&) = delete;
  AttentionWorker& operator=(const AttentionWorker&) = delete;

  KeyRange keys_of(const AttentionItem& item, int64_t i) const {
    return seen_keys(a_, item, (item.first + i) / (a_.q_heads / a_.kv_heads));
  }
  void start(const AttentionItem& item) { start_queries<Form>(a_, item, queries_); }
  void attend(const AttentionItem& item, int64_t part, const PartialSums& to) {
    queries_.sums = to.sums;
    if constexpr (Form::kWholeParts) {
      Form::attend_part(a_, item, part, queries_);
    } else {
      attend_part<Form>(a_, item, part, queries_);
    }
    for (int64_t i = 0; i < item.count; ++i) {
      to.max[i] = queries_.max[i];
      to.weight[i] = queries_.weight[i];
    }
  }
  void resume(const AttentionItem& item, const PartialSums& total) const {
    simd::resume<Form>(a_, item, total);
  }
  void finish(const AttentionItem& item, const PartialSums& total) const {
    simd::finish<V, Form>(a_, item, total);
  }

 protected:
  typename Form::Queries queries_;

 private:
  const AttentionArgs& a_;
};

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
  if (is_quantised_state(a.pool_dtype)) return portable::page_write(a);  // few rows, done once
  write_pages<V, float>(a);
}

}  // namespace banyan::simd
