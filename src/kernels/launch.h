// What every CPU kernel does around its arithmetic: split work over the launch's threads and walk
// the rows of a batch span by span. Work is split statically, so a kernel whose items do not share
// results gives the same bits for any number of threads.
#pragma once

#include <cstdint>

#include "base/function_ref.h"
#include "kernels/kernel_table.h"

namespace banyan {

// Calls body(begin, end) on one share of [0, count) per worker, cut at multiples of `grain`; all of
// it on the calling thread where the launch has no threads.
inline void parallel_for(const Launch& launch, int64_t count, int64_t grain,
                         FunctionRef<void(int64_t, int64_t)> body) {
  if (launch.threads != nullptr) {
    launch.threads->parallel_for(count, grain, body);
  } else if (count > 0) {
    body(0, count);
  }
}

// The rows of all spans.
inline int64_t span_rows(const SpanArgs* spans, int64_t span_count) {
  int64_t rows = 0;
  for (int64_t s = 0; s < span_count; ++s) rows += spans[s].row_count;
  return rows;
}

// With the rows of all spans numbered one after another, calls body(span, i) for the numbers in
// [begin, end): row i of `span`, which is row span.row_begin + i of the batch.
template <class Body>
inline void for_span_rows(const SpanArgs* spans, int64_t span_count, int64_t begin, int64_t end,
                          const Body& body) {
  int64_t first = 0;
  for (int64_t s = 0; s < span_count && first < end; ++s) {
    int64_t i = begin > first ? begin - first : 0;
    for (; i < spans[s].row_count && first + i < end; ++i) body(spans[s], i);
    first += spans[s].row_count;
  }
}

// Where the row of `position` of one head starts in a pool [pages, heads, page_size, width], in
// elements.
inline int64_t pool_offset(const int32_t* page_table, const SpanArgs& span, int64_t position,
                           int64_t head, int64_t heads, int64_t page_size, int64_t width) {
  int64_t page = page_table[span.page_begin + position / page_size];
  return ((page * heads + head) * page_size + position % page_size) * width;
}

}  // namespace banyan
