// The rows of a step's spans, which lie in device memory: the host that launches a kernel does not
// know how many there are.
#pragma once

#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/sparse.h"

namespace banyan::cuda {

BANYAN_HOST_DEVICE constexpr int64_t rows_of(const SpanArgs* spans, int64_t count) {
  int64_t rows = 0;
  for (int64_t s = 0; s < count; ++s) rows += spans[s].row_count;
  return rows;
}

struct SpanRow {
  int64_t span, i;  // row i of the span
};

// The row of this number, counted over all spans.
BANYAN_HOST_DEVICE constexpr SpanRow span_row(const SpanArgs* spans, int64_t number) {
  int64_t s = 0;
  while (number >= spans[s].row_count) number -= spans[s++].row_count;
  return {s, number};
}

// Calls body(span, i, head) for every row of all spans and each of `heads` heads, one after another
// in a block; blocks share them.
template <class Block, class Body>
BANYAN_DEVICE void for_span_heads(Block& block, const SpanArgs* spans, int64_t span_count,
                                  int64_t heads, const Body& body) {
  int64_t items = rows_of(spans, span_count) * heads;
  for (int64_t item = block.index(); item < items; item += block.count()) {
    int64_t row = quotient(item, heads);
    SpanRow at = span_row(spans, row);
    body(spans[at.span], at.i, item - row * heads);
  }
}

// The same for the rows of a part, with the row's number in it: body(span, i, head, number).
template <class Block, class Body>
BANYAN_DEVICE void for_part_heads(Block& block, const SpanArgs* spans, const RowPart& part,
                                  int64_t heads, const Body& body) {
  for (int64_t item = block.index(); item < part.count * heads; item += block.count()) {
    int64_t number = quotient(item, heads);
    SpanRow at = span_row(spans, part.begin + number);
    body(spans[at.span], at.i, item - number * heads, number);
  }
}

}  // namespace banyan::cuda
