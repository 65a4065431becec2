// Pooled keys of native sparse attention (the definitions are in kernels/portable/pooled.cpp).
#pragma once

#include "kernels/cuda/slots.h"
#include "kernels/cuda/spans.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"

namespace banyan::cuda {

// A thread has one column of one head of one span.
template <class S>
struct PoolKeys {
  PoolKeysArgs a;
  Shape shape() const { return {}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.span_count * a.heads * a.width, [&](int64_t item) {
      int64_t at = quotient(item, a.width), c = item - at * a.width;
      int64_t s = quotient(at, a.heads), head = at - s * a.heads;
      const SpanArgs& span = a.spans[s];
      int64_t end = quotient(span.first_position + span.row_count, a.stride);
      int64_t entry = quotient(span.first_position, a.stride);
      int64_t first = quotient(a.pool_tokens, a.stride) - 1;
      for (entry = entry > first ? entry : first; entry < end; ++entry) pool(span, entry, head, c);
    });
  }

  BANYAN_DEVICE void pool(const SpanArgs& span, int64_t entry, int64_t head, int64_t c) const {
    RowShape shape = {.width = a.width};
    int64_t first = (entry + 1) * a.stride - a.pool_tokens;
    float sum = a.bias[c];
    for (int64_t i = 0; i < a.pool_tokens; ++i) {
      const S* key =
          static_cast<const S*>(a.keys) + pool_offset(a.key_page_table, span, first + i, head,
                                                      a.heads, a.page_size, row_stride<S>(shape));
      sum += a.weights[i * a.width + c] * RowValues<S>(key, shape)[c];
    }
    int64_t row = sums_row(a.page_table, span, entry, head, a.heads, a.page_size, a.stride);
    a.pooled[row * a.width + c] = sum;
  }
};

// A block has one head of keys of one row, and takes its queries one after another.
struct PooledAttention {
  PooledAttentionArgs a;
  Shape shape() const {
    return {.blocks = a.part.count * a.heads,
            .scratch_bytes = (a.entries_max * (a.block_tokens / a.stride)) * sizeof(float)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    auto* weights = reinterpret_cast<float*>(block.scratch());
    int64_t group = quotient(a.q_heads, a.heads), first = quotient(a.pool_tokens, a.stride) - 1;
    for_part_heads(
        block, a.spans, a.part, a.heads,
        [&](const SpanArgs& span, int64_t i, int64_t head, int64_t number) {
          int64_t position = span.first_position + i;
          int64_t count = quotient(position + 1, a.stride) - first;  // entries that it sees
          if (count < 0) count = 0;
          float* scores = a.scores + (number * a.heads + head) * a.entries_max;
          int64_t blocks = quotient(position, a.block_tokens) + 1;
          for_each(block, blocks, [&](int64_t b) { scores[b] = 0; });
          auto row_of = [&](const float* pool, int64_t n) {
            return pool +
                   sums_row(a.page_table, span, first + n, head, a.heads, a.page_size, a.stride) *
                       a.width;
          };
          for (int64_t g = head * group; g < (head + 1) * group; ++g) {
            const float* q = a.q + (span.row_begin + i) * a.q_row_stride + g * a.width;
            for_each(block, count,
                     [&](int64_t n) { weights[n] = dot(q, row_of(a.keys, n), a.width) * a.scale; });
            if (count > 0) normalise(block, weights, count);
            float* out = a.out + ((span.row_begin + i) * a.q_heads + g) * a.width;
            for_each(block, a.width, [&](int64_t c) {
              float sum = 0;
              for (int64_t n = 0; n < count; ++n) sum += weights[n] * row_of(a.values, n)[c];
              out[c] = sum;
            });
            for_each(block, blocks,
                     [&](int64_t b) { scores[b] += share_of(weights, count, first, b); });
          }
        });
  }

 private:
  template <class Block>
  BANYAN_DEVICE static void normalise(Block& block, float* weights, int64_t count) {
    float max = block.reduce(
        [&](int thread) {
          float most = kLowest;
          for (int64_t n = thread; n < count; n += Block::kThreads) {
            most = Largest()(most, weights[n]);
          }
          return most;
        },
        Largest());
    for_each(block, count, [&](int64_t n) { weights[n] = exp(weights[n] - max); });
    float sum = sum_over(block, count, [&](int64_t n) { return weights[n]; });
    for_each(block, count, [&](int64_t n) { weights[n] /= sum; });
  }

  // The weight on block b: entry n covers the strides from n to n + first.
  BANYAN_DEVICE float share_of(const float* weights, int64_t count, int64_t first,
                               int64_t b) const {
    int64_t strides = quotient(a.block_tokens, a.stride);
    float share = 0;
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t stride = n; stride <= n + first; ++stride) {
        if (quotient(stride, strides) == b) share += weights[n];
      }
    }
    return share;
  }
};

}  // namespace banyan::cuda
