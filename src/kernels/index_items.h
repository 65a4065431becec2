// How CPU kernels divide the scores of an index (kernels/sparse.h) among workers: an item is some
// rows of one span and some of the keys that they see. `Args` are those of scores by tokens or by
// blocks. A score depends only on its row and key, so the division does not change the bits.
//
// Included by files of several instruction sets, so everything is static or a template (see
// x86/vec_avx512.h).
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/state_rows.h"

namespace banyan {

// Rows [i, i + rows) of a span over its keys [begin, end). Their scores begin at row `score_row`.
struct IndexItem {
  const SpanArgs* span;
  int64_t i, rows;
  int64_t score_row;
  int64_t begin, end;
};

constexpr int64_t kIndexRows = 4;    // rows that share the reading of a key
constexpr int64_t kIndexKeys = 512;  // a multiple of what kernels process at once

// Calls body(item) for all items of a launch, with `item_keys` keys each, and returns their number.
template <class Args, class Body>
static inline int64_t for_index_items(const Args& a, int64_t item_keys, const Body& body) {
  int64_t items = 0, number = 0;  // numbers the span's first row among all spans
  int64_t part_end = a.part.begin + a.part.count;
  for (const SpanArgs* span = a.spans; span < a.spans + a.span_count; ++span) {
    int64_t first = a.part.begin > number ? a.part.begin - number : 0;
    int64_t end = part_end - number < span->row_count ? part_end - number : span->row_count;
    int64_t scored = a.all_below - span->first_position;  // rows before it take all keys
    for (int64_t i = first > scored ? first : scored; i < end; i += kIndexRows) {
      int64_t rows = end - i < kIndexRows ? end - i : kIndexRows;
      int64_t keys = span->first_position + i + rows;
      for (int64_t key = 0; key < keys; key += item_keys, ++items) {
        int64_t stop = key + item_keys < keys ? key + item_keys : keys;
        body(IndexItem{span, i, rows, number + i - a.part.begin, key, stop});
      }
    }
    number += span->row_count;
  }
  return items;
}

// Calls body(items) on each worker; `items` calls a function with each item of the worker.
template <class Args, class Worker>
static inline void share_index_items(const Args& a, int64_t item_keys, const Worker& worker) {
  int64_t items = for_index_items(a, item_keys, [](const IndexItem&) {});
  parallel_for(a.launch, items, 1, [&](int64_t begin, int64_t end) {
    worker([&](const auto& body) {
      int64_t n = 0;
      for_index_items(a, item_keys, [&](const IndexItem& item) {
        if (n >= begin && n < end) body(item);
        ++n;
      });
    });
  });
}

// The query of one head of one row of an item.
template <class Args>
static inline const float* index_query(const Args& a, const IndexItem& item, int64_t r,
                                       int64_t head) {
  return a.q + (item.span->row_begin + item.i + r) * a.q_row_stride + head * a.width;
}
static inline const float* index_weights(const IndexScoresArgs& a, const IndexItem& item,
                                         int64_t r) {
  return a.weights + (item.span->row_begin + item.i + r) * a.weights_row_stride;
}

}  // namespace banyan
