// The scaffolding of every CPU kernel: splits work over the launch's threads and iterates over the
// rows of a batch span by span. The split is static, so a kernel whose items do not share results
// gives the same bits for any number of threads.
//
// Included by files of several instruction sets, so nothing here is an inline function with
// external linkage (see x86/vec_avx512.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"

namespace banyan {

// Calls body(begin, end) with one share of [0, count) per worker, split at multiples of `grain`.
// Runs everything on the calling thread if the launch has no threads.
void parallel_for(const Launch& launch, int64_t count, int64_t grain,
                  FunctionRef<void(int64_t begin, int64_t end)> body);

// Calls body(first, step) on every worker, which handles items first, first + step, ...; balances
// items whose cost grows with their index.
void parallel_interleaved(const Launch& launch,
                          FunctionRef<void(int64_t first, int64_t step)> body);

// The grain for rows of `dim` cheap elements: smaller jobs finish before a worker wakes up.
static inline int64_t rows_per_job(int64_t dim) {
  constexpr int64_t kElements = 16384;
  return dim < kElements ? kElements / (dim + 1) + 1 : 1;
}

// Total rows of all spans.
int64_t span_rows(const SpanArgs* spans, int64_t span_count);

// Numbers the rows of all spans consecutively and calls body(span, i) for the numbers in [begin,
// end): row i of `span`, which is row span.row_begin + i of the batch.
template <class Body>
static inline void for_span_rows(const SpanArgs* spans, int64_t span_count, int64_t begin,
                                 int64_t end, const Body& body) {
  int64_t first = 0;
  for (int64_t s = 0; s < span_count && first < end; ++s) {
    int64_t i = begin > first ? begin - first : 0;
    for (; i < spans[s].row_count && first + i < end; ++i) body(spans[s], i);
    first += spans[s].row_count;
  }
}

// One matrix of a grouped product, with its rows.
struct GemmPart {
  const std::byte* weight;       // packed [n, k]
  int64_t row_begin, row_count;  // rows of y
  int64_t segment, y_column;
  const float* bias;  // [n] or null
};

static inline GemmPart gemm_part(const GemmArgs& a, int64_t i) {
  const GemmGroup& w = a.weights;
  int64_t begin = w.begins ? w.begins[i] : 0, end = w.begins ? w.begins[i + 1] : a.x_rows;
  return {static_cast<const std::byte*>(w.weight) + i * w.weight_stride,
          begin,
          end - begin,
          i * w.segment_step,
          i * w.y_column_stride,
          a.bias ? a.bias + i * a.bias_stride : nullptr};
}

// The number of rows of x that the product reads; memory after the last one may be uninitialised.
static inline int64_t gemm_x_rows(const GemmArgs& a) {
  return a.weights.begins && !a.x_index ? a.weights.begins[a.weights.count] : a.x_rows;
}

// Calls body(part, x, y) for every row of every part, with its k columns of x and its position in
// y.
template <class Body>
static inline void for_part_rows(const GemmArgs& a, const Body& body) {
  for (int64_t i = 0; i < a.weights.count; ++i) {
    GemmPart part = gemm_part(a, i);
    for (int64_t r = part.row_begin; r < part.row_begin + part.row_count; ++r) {
      int64_t source = a.x_index ? a.x_index[r] : r;
      body(part, a.x + source * a.x_stride + part.segment * a.segment_stride,
           a.y + r * a.y_stride + part.y_column);
    }
  }
}

}  // namespace banyan
