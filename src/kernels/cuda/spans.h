// The rows of a step's spans, which lie in device memory: the host that launches a kernel does not
// know how many there are.
#pragma once

#include <cstddef>
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

// The same with a table in shared memory: for kernels whose threads have rows of their own.
class SpanRows {
 public:
  BANYAN_HOST_DEVICE static constexpr size_t shared_bytes(int64_t span_count) {
    return static_cast<size_t>(kBlockThreads + span_count + 1) * sizeof(int32_t);
  }

  // Each thread has consecutive spans.
  template <class Block>
  BANYAN_DEVICE SpanRows(Block& block, const SpanArgs* spans, int64_t count)
      : begins_(block.template shared<int32_t>() + Block::kThreads), spans_(count) {
    if (count == 1) {
      all_ = spans[0].row_count;
      return;
    }
    auto* of_threads = block.template shared<int32_t>();
    int64_t share = (count + Block::kThreads - 1) / Block::kThreads;
    block.each([&](int thread) {
      int64_t first = thread * share;
      of_threads[thread] = static_cast<int32_t>(rows_of(spans + first, own(first, share)));
    });
    block.exclusive_sums(of_threads);
    block.each([&](int thread) {
      int32_t begin = of_threads[thread];
      int64_t first = thread * share, end = first + own(first, share);
      for (int64_t s = first; s < end; ++s) {
        begins_[s] = begin;
        begin += spans[s].row_count;
      }
      if (thread == Block::kThreads - 1) begins_[count] = begin;
    });
  }

  BANYAN_DEVICE int64_t count() const { return spans_ == 1 ? all_ : begins_[spans_]; }
  BANYAN_DEVICE SpanRow at(int64_t number) const {
    if (spans_ == 1) return {0, number};
    int64_t first = 0, end = spans_;  // the span is one of these
    while (end - first > 1) {
      int64_t middle = (first + end) / 2;
      (begins_[middle] <= number ? first : end) = middle;
    }
    return {first, number - begins_[first]};
  }

 private:
  // How many spans there are from `first` on, at most a share.
  BANYAN_DEVICE int64_t own(int64_t first, int64_t share) const {
    return first < spans_ ? least(share, spans_ - first) : 0;
  }

  int32_t* begins_;  // the rows before each span, and all; not of a single one
  int64_t spans_;
  int64_t all_ = 0;  // rows of a single span
};

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
