// The choice of keys that sparse attention looks at (the definitions are in
// kernels/portable/sparse.cpp and index.cpp).
#pragma once

#include "kernels/cuda/select_best.h"
#include "kernels/cuda/slots.h"
#include "kernels/cuda/spans.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"

namespace banyan::cuda {

// A thread has one column of one head of one span: a row of sums is made of the one before.
template <class S>
struct KeySums {
  KeySumsArgs a;
  Shape shape() const { return {}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t in_row = least(a.block_tokens, a.page_size);
    for_all(block, a.span_count * a.heads * a.width, [&](int64_t item) {
      int64_t at = quotient(item, a.width), c = item - at * a.width;
      int64_t s = quotient(at, a.heads), head = at - s * a.heads;
      const SpanArgs& span = a.spans[s];
      int64_t end = span.first_position + span.row_count;
      for (int64_t next = (quotient(span.first_position, in_row) + 1) * in_row; next <= end;
           next += in_row) {
        sum_row(span, head, next - 1, in_row, c);
      }
    });
  }

  BANYAN_DEVICE float* row_of(const SpanArgs& span, int64_t head, int64_t position,
                              int64_t in_row) const {
    int64_t index = quotient(position, a.page_size), rows = quotient(a.page_size, in_row);
    int64_t page = a.page_table[span.page_begin + index];
    int64_t row = quotient(position - index * a.page_size, in_row);
    return a.sums + ((page * a.heads + head) * rows + row) * a.width;
  }

  // Column c of the row whose last position is `last`.
  BANYAN_DEVICE void sum_row(const SpanArgs& span, int64_t head, int64_t last, int64_t in_row,
                             int64_t c) const {
    RowShape shape = {.width = a.width};
    int64_t first = last + 1 - in_row;
    bool begins = remainder(first, a.block_tokens) == 0;
    float sum = begins ? 0 : row_of(span, head, first - 1, in_row)[c];
    for (int64_t j = first; j <= last; ++j) {
      const S* key =
          static_cast<const S*>(a.keys) +
          pool_offset(a.page_table, span, j, head, a.heads, a.page_size, row_stride<S>(shape));
      sum += RowValues<S>(key, shape)[c];
    }
    row_of(span, head, last, in_row)[c] = sum;
  }
};

struct BlockScores {
  BlockScoresArgs a;
  Shape shape() const {
    return {.blocks = a.part.count * a.heads, .shared_bytes = a.width * sizeof(float)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t group = quotient(a.q_heads, a.heads);
    auto* mean = block.template shared<float>();
    for_part_heads(
        block, a.spans, a.part, a.heads,
        [&](const SpanArgs& span, int64_t i, int64_t head, int64_t number) {
          const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * group * a.width;
          for_each(block, a.width, [&](int64_t c) {
            float sum = 0;
            for (int64_t g = 0; g < group; ++g) sum += q[g * a.width + c];
            mean[c] = sum / group;
          });
          float* scores = a.scores + (number * a.heads + head) * a.entries_max;
          for_each(block, quotient(span.first_position + i, a.block_tokens), [&](int64_t b) {
            const float* sums = a.sums + sums_row(a.page_table, span, b, head, a.heads, a.page_size,
                                                  a.block_tokens) *
                                             a.width;
            scores[b] = dot(mean, sums, a.width) / a.block_tokens;
          });
        });
  }
};

template <class S>
struct BlockMaxima {
  BlockMaximaArgs a;
  Shape shape() const { return {.blocks = a.part.count * a.heads}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_part_heads(block, a.spans, a.part, a.heads,
                   [&](const SpanArgs& span, int64_t i, int64_t head, int64_t number) {
                     int64_t position = span.first_position + i;
                     if (position < a.all_below) return;
                     const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * a.width;
                     float* scores = a.scores + (number * a.heads + head) * a.entries_max;
                     for_each(block, quotient(position, a.block_tokens),
                              [&](int64_t b) { scores[b] = best_of(span, q, b); });
                   });
  }

  BANYAN_DEVICE float best_of(const SpanArgs& span, const float* q, int64_t b) const {
    RowShape shape = {.width = a.width};
    float best = -kInfinity;
    for (int64_t j = b * a.block_tokens; j < (b + 1) * a.block_tokens; ++j) {
      RowValues<S> key(
          static_cast<const S*>(a.keys) +
              pool_offset(a.page_table, span, j, 0, 1, a.page_size, row_stride<S>(shape)),
          shape);
      float score = 0;
      for (int64_t c = 0; c < a.width; ++c) score += q[c] * key[c];
      best = Largest()(best, score);
    }
    return best;
  }
};

struct SelectKeys {
  SelectKeysArgs a;
  Shape shape() const {
    return {.blocks = a.part.count * a.heads,
            .shared_bytes = kBlockThreads * sizeof(int64_t),
            .scratch_bytes = a.rule.top_k * sizeof(int64_t)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_part_heads(block, a.spans, a.part, a.heads,
                   [&](const SpanArgs& span, int64_t i, int64_t head, int64_t number) {
                     select(block, span.first_position + i, span.row_begin + i, head,
                            a.scores + (number * a.heads + head) * a.entries_max);
                   });
  }

  template <class Block>
  BANYAN_DEVICE void select(Block& block, int64_t position, int64_t row, int64_t head,
                            const float* scores) const {
    Candidates c = candidates_at(a.rule, position);
    auto* entries = reinterpret_cast<int64_t*>(block.scratch());
    bool all = c.count == c.all;
    if (!all) {
      select_best(
          block, c.end - c.first, c.count, block.template shared<int64_t>(),
          [&](int64_t b) { return score_order(scores[c.first + b]); },
          [&](int64_t rank, int64_t b) { entries[rank] = c.first + b; });
    }
    block.one([&] {
      RunWriter writer(a, row, head, position);
      if (all) return writer.add(0, c.all);
      writer.add(0, c.first);
      for (int64_t e = 0; e < c.count; ++e) writer.add(entries[e], entries[e] + 1);
      writer.add(c.end, c.all);
    });
  }
};

// Scores of one row, whose queries are rounded where keys are codes.
template <class S>
struct IndexScores {
  IndexScoresArgs a;
  Shape shape() const {
    size_t rounded = kIsCode<S> ? sizeof(float) + sizeof(S) : 0;
    return {.blocks = a.part.count, .shared_bytes = (a.heads * a.width) * rounded};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_part_heads(
        block, a.spans, a.part, 1, [&](const SpanArgs& span, int64_t i, int64_t, int64_t number) {
          int64_t position = span.first_position + i;
          if (position < a.all_below) return;
          const float* q = a.q + (span.row_begin + i) * a.q_row_stride;
          const float* weights = a.weights + (span.row_begin + i) * a.weights_row_stride;
          if constexpr (kIsCode<S>) q = rounded(block, q);
          float* scores = a.scores + number * a.entries_max;
          for_each(block, position + 1, [&](int64_t j) { scores[j] = score(span, q, weights, j); });
        });
  }

  template <class Block>
  BANYAN_DEVICE const float* rounded(Block& block, const float* q) const {
    auto* to = block.template shared<float>();
    auto* codes = reinterpret_cast<S*>(to + a.heads * a.width);
    for_each(block, a.heads, [&](int64_t h) {
      round_query(q + h * a.width, a.width, codes + h * a.width, to + h * a.width);
    });
    return to;
  }

  BANYAN_DEVICE float score(const SpanArgs& span, const float* q, const float* weights,
                            int64_t j) const {
    RowShape shape = {.width = a.width};
    const S* key = static_cast<const S*>(a.keys) +
                   pool_offset(a.page_table, span, j, 0, 1, a.page_size, row_stride<S>(shape));
    float sum = 0;
    for (int64_t h = 0; h < a.heads; ++h) {
      float dot = 0;
      for (int64_t c = 0; c < a.width; ++c) dot += q[h * a.width + c] * to_float(key[c]);
      sum += weights[h] * (dot > 0 ? dot : 0);
    }
    if constexpr (kIsCode<S>) sum *= row_scale(key, shape, 0);
    return sum;
  }
};

}  // namespace banyan::cuda
