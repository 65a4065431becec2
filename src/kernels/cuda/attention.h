// Attention over pages, a block for each row and head (the definitions are in
// kernels/portable/attention.cpp and latent_attention.cpp).
//
// Keys come in parts at multiples of 512 positions, or of as many ranks where they are selected. A
// part has a softmax of its own; parts are merged in ascending order. So a row's result depends
// neither on spans nor on how many parts a launch sees.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/spans.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"

namespace banyan::cuda {

inline constexpr int64_t kPartKeys = kAttentionBlock;

// The keys that a row sees: positions [first, end), or ranks where `selected` has runs.
struct VisibleKeys {
  int64_t first, end;
  SelectedRow selected = {};

  BANYAN_HOST_DEVICE constexpr int64_t position(int64_t key) const {
    if (selected.runs == nullptr) return key;
    return selected.position(selected.run_of(key), key);
  }
};

BANYAN_HOST_DEVICE constexpr VisibleKeys visible_keys(const SelectedKeys& keys, int64_t row,
                                                      int64_t head, int64_t first, int64_t end) {
  if (keys.runs == nullptr) return {first, end};
  SelectedRow selected = selected_row(keys, row, head);
  return {0, selected.key_count, selected};
}

// A softmax in progress.
struct SoftmaxSums {
  float max = kLowest;  // finite, so that a score of -inf weighs nothing even if it is the first
  float weight = 0;
};

// Memory of a block. The arrays have an entry for each key of a part.
struct AttentionMemory {
  int64_t* rows;  // of the pool
  float* weights;
  float* q;

  static size_t bytes(int64_t width) {
    return kPartKeys * (sizeof(int64_t) + sizeof(float)) + width * sizeof(float);
  }
  template <class Block>
  BANYAN_DEVICE static AttentionMemory of(Block& block) {
    auto* rows = block.template shared<int64_t>();
    auto* weights = reinterpret_cast<float*>(rows + kPartKeys);
    return {rows, weights, weights + kPartKeys};
  }
};

// Adds the keys to `sums` and to the weighted values in out[0, value_dim). With row_of(position) as
// the row of the pool that has a key, score(row) is its score and value(row, c) a column of its
// value.
template <class Block, class RowOf, class Score, class Value>
BANYAN_DEVICE void attend(Block& block, const VisibleKeys& keys, const AttentionMemory& memory,
                          SoftmaxSums& sums, float* out, int64_t value_dim, const RowOf& row_of,
                          const Score& score, const Value& value) {
  int64_t* rows = memory.rows;
  float* weights = memory.weights;
  for (int64_t part = keys.first / kPartKeys * kPartKeys; part < keys.end; part += kPartKeys) {
    int64_t begin = part > keys.first ? part : keys.first;
    int64_t count = least(part + kPartKeys, keys.end) - begin;
    float max = block.reduce(
        [&](int thread) {
          float most = kLowest;
          for (int64_t j = thread; j < count; j += Block::kThreads) {
            rows[j] = row_of(keys.position(begin + j));
            weights[j] = score(rows[j]);
            most = Largest()(most, weights[j]);
          }
          return most;
        },
        Largest());
    float weight = block.reduce(
        [&](int thread) {
          float sum = 0;
          for (int64_t j = thread; j < count; j += Block::kThreads) {
            weights[j] = exp(weights[j] - max);
            sum += weights[j];
          }
          return sum;
        },
        Plus());
    float larger = Largest()(sums.max, max);
    float kept = exp(sums.max - larger), added = exp(max - larger);
    for_each(block, value_dim, [&](int64_t c) {
      float sum = 0;
      for (int64_t j = 0; j < count; ++j) sum += weights[j] * value(rows[j], c);
      out[c] = out[c] * kept + sum * added;
    });
    sums = {larger, sums.weight * kept + weight * added};
  }
}

template <class S>
struct Attention {
  AttentionArgs a;
  Shape shape() const { return {.shared_bytes = AttentionMemory::bytes(a.head_dim)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_span_heads(
        block, a.spans, a.span_count, a.q_heads,
        [&](const SpanArgs& span, int64_t i, int64_t head) { row(block, span, i, head); });
  }

  template <class Block>
  BANYAN_DEVICE void row(Block& block, const SpanArgs& span, int64_t i, int64_t head) const {
    int64_t position = span.first_position + i, row = span.row_begin + i;
    int64_t first = a.window > 0 && position >= a.window ? position - a.window + 1 : 0;
    int64_t end = position + 1;
    if (a.blocks != nullptr) {
      const KeyBlock& keys = a.blocks[&span - a.spans];
      if (position < keys.begin) return;
      first = keys.begin;
      end = least(end, keys.end);
    }
    int64_t place = row * a.q_heads + head,
            kv_head = quotient(head, quotient(a.q_heads, a.kv_heads));
    float* out = a.out + place * a.value_dim;
    bool carried = a.blocks != nullptr && first > 0;
    SoftmaxSums sums;
    if (carried) sums = {a.max[place], a.weight[place]};
    AttentionMemory memory = AttentionMemory::of(block);
    const float* query = a.q + row * a.q_row_stride + head * a.head_dim;
    for_each(block, a.head_dim, [&](int64_t c) { memory.q[c] = query[c]; });
    if (!carried) for_each(block, a.value_dim, [&](int64_t c) { out[c] = 0; });
    attend(
        block, visible_keys(a.selected, row, kv_head, first, end), memory, sums, out, a.value_dim,
        [&](int64_t j) {
          return pool_offset(a.page_table, span, j, kv_head, a.kv_heads, a.page_size, 1);
        },
        [&](int64_t r) { return score(memory.q, of(a.k_pool, r, a.head_dim)); },
        [&](int64_t r, int64_t c) { return of(a.v_pool, r, a.value_dim)[c]; });
    if (end <= position) {
      block.one([&] {
        a.max[place] = sums.max;
        a.weight[place] = sums.weight;
      });
      return;
    }
    float kept = 1;
    if (a.sinks != nullptr) {
      float larger = Largest()(sums.max, a.sinks[head]);
      kept = exp(sums.max - larger);
      sums.weight = sums.weight * kept + exp(a.sinks[head] - larger);
    }
    for_each(block, a.value_dim, [&](int64_t c) { out[c] = out[c] * kept / sums.weight; });
  }

  BANYAN_DEVICE RowValues<S> of(const void* pool, int64_t row, int64_t width) const {
    RowShape shape = {.width = width};
    return RowValues<S>(static_cast<const S*>(pool) + row * row_stride<S>(shape), shape);
  }
  BANYAN_DEVICE float score(const float* q, const RowValues<S>& k) const {
    float score = 0;
    for (int64_t c = 0; c < a.head_dim; ++c) score += q[c] * k[c];
    score *= a.scale;
    return a.soft_cap > 0 ? soften(score, a.soft_cap) : score;
  }
};

template <class S>
struct LatentAttention {
  LatentAttentionArgs a;
  Shape shape() const { return {.shared_bytes = AttentionMemory::bytes(a.width)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_span_heads(
        block, a.spans, a.span_count, a.heads,
        [&](const SpanArgs& span, int64_t i, int64_t head) { row(block, span, i, head); });
  }

  template <class Block>
  BANYAN_DEVICE void row(Block& block, const SpanArgs& span, int64_t i, int64_t head) const {
    int64_t row = span.row_begin + i;
    AttentionMemory memory = AttentionMemory::of(block);
    const float* query = a.q + row * a.q_row_stride + head * a.width;
    float* out = a.out + (row * a.heads + head) * a.rank;
    for_each(block, a.width, [&](int64_t c) { memory.q[c] = query[c]; });
    for_each(block, a.rank, [&](int64_t c) { out[c] = 0; });
    SoftmaxSums sums;
    attend(
        block, visible_keys(a.selected, row, 0, 0, span.first_position + i + 1), memory, sums, out,
        a.rank, [&](int64_t j) { return pool_offset(a.page_table, span, j, 0, 1, a.page_size, 1); },
        [&](int64_t r) {
          RowValues<S> k = latent(r);
          float score = 0;
          for (int64_t c = 0; c < a.width; ++c) score += memory.q[c] * k[c];
          return score * a.scale;
        },
        [&](int64_t r, int64_t c) { return latent(r)[c]; });
    for_each(block, a.rank, [&](int64_t c) { out[c] /= sums.weight; });
  }

  BANYAN_DEVICE RowValues<S> latent(int64_t row) const {
    RowShape shape = {.width = a.width, .split = a.rank < a.width ? a.rank : 0};
    return RowValues<S>(static_cast<const S*>(a.pool) + row * row_stride<S>(shape), shape);
  }
};

}  // namespace banyan::cuda
