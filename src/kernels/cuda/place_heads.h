// Norms, rotation and page writes of the heads of queries, keys and values, or of latents, in one
// launch (the definition is in kernels/place_heads.h).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/copies.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/spans.h"
#include "kernels/kernel_table.h"
#include "kernels/page_rows.h"
#include "kernels/state_rows.h"

namespace banyan::cuda {

// A warp has a head of one row. The head lies in shared memory between its steps.
template <class S>
struct PlaceHeads {
  static constexpr int kHeads = kBlockThreads / kWarp;  // of a block at a time
  using Norm = RowNorm<kWarp>;

  PlaceHeadsArgs a;

  BANYAN_HOST_DEVICE int64_t q_items() const { return a.q != nullptr ? a.rows * a.q_heads : 0; }
  BANYAN_HOST_DEVICE int64_t stored_heads() const {  // of a row
    return (a.k != nullptr ? a.kv_heads : 0) + (a.v != nullptr ? a.kv_heads : 0);
  }
  BANYAN_HOST_DEVICE int64_t span_count() const { return a.k != nullptr ? a.span_count : 0; }
  BANYAN_HOST_DEVICE int64_t head_floats() const { return (a.head_dim + 3) / 4 * 4; }
  BANYAN_HOST_DEVICE size_t heads_begin() const {  // in shared memory, after the spans' rows
    return (SpanRows::shared_bytes(span_count()) + sizeof(Four) - 1) / sizeof(Four) * sizeof(Four);
  }
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.head_dim, a.split, a.q, a.k, a.v, a.q_row_stride, a.k_row_stride,
                    a.v_row_stride, a.q_weight, a.k_weight, a.v_weight, a.q_out);
  }
  Shape shape() const {
    int64_t items = q_items() + a.rows * stored_heads();
    size_t heads_bytes = static_cast<size_t>(kHeads * head_floats()) * sizeof(float);
    return {.blocks = blocks_for(items * kWarp), .shared_bytes = heads_begin() + heads_bytes};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    fours() ? run<4>(block) : run<1>(block);
  }

 private:
  // Of a head. One that is beyond the last has no x.
  struct Head {
    const float* x = nullptr;
    const float* weight = nullptr;
    const float *cos = nullptr, *sin = nullptr;  // null: values do not turn
    float* q_out = nullptr;                      // of a query
    S* to = nullptr;                             // of a key or value
  };

  BANYAN_DEVICE Head query(int64_t item) const {
    int64_t row = quotient(item, a.q_heads), head = item - row * a.q_heads;
    return {.x = a.q + row * a.q_row_stride + head * a.head_dim,
            .weight = a.q_weight,
            .cos = a.cos + row * a.pairs,
            .sin = a.sin + row * a.pairs,
            .q_out = a.q_out + item * a.head_dim};
  }
  BANYAN_DEVICE Head key_or_value(const SpanRows& rows, int64_t item) const {
    int64_t number = quotient(item, stored_heads()), head = item - number * stored_heads();
    bool is_key = head < a.kv_heads;
    if (!is_key) head -= a.kv_heads;
    SpanRow at = rows.at(number);
    const SpanArgs& span = a.spans[at.span];
    int64_t row = span.row_begin + at.i;
    int64_t to = pool_offset(a.page_table, span, span.first_position + at.i, head, a.kv_heads,
                             a.page_size, row_stride<S>(shape_of_row()));
    if (!is_key) {
      return {.x = a.v + row * a.v_row_stride + head * a.head_dim,
              .weight = a.v_weight,
              .to = static_cast<S*>(a.v_pool) + to};
    }
    return {.x = a.k + row * a.k_row_stride + head * a.head_dim,
            .weight = a.k_weight,
            .cos = a.cos + row * a.pairs,
            .sin = a.sin + row * a.pairs,
            .to = static_cast<S*>(a.k_pool) + to};
  }

  BANYAN_DEVICE RowShape shape_of_row() const { return {.width = a.head_dim, .split = a.split}; }

  template <int N, class Block>
  BANYAN_DEVICE void run(Block& block) const {
    SpanRows rows(block, a.spans, span_count());
    auto* shared = block.template shared<std::byte>() + heads_begin();
    int64_t items = q_items() + rows.count() * stored_heads();
    for (int64_t i = block.index() * kHeads; i < items; i += block.count() * kHeads) {
      typename Block::template PerThread<Head> heads;
      auto row_of = [&](int thread) {
        return reinterpret_cast<float*>(shared) + thread / kWarp * head_floats();
      };
      block.each([&](int thread) {
        int64_t item = i + thread / kWarp;
        if (item >= items) return;
        heads[thread] = item < q_items() ? query(item) : key_or_value(rows, item - q_items());
        copy<N>(heads[thread].x, thread % kWarp, row_of(thread));
      });
      // Norm and rotation, in this order or the other. Unrolled, the norm would be there twice.
      BANYAN_NO_UNROLL
      for (int step = 0; step < 2; ++step) {
        bool norms = (step == 1) == a.norm_after_rope;
        norms ? norm<N>(block, heads, row_of) : rotate(block, heads, row_of);
      }
      keep<N>(block, heads, row_of);
    }
  }

  template <int N>
  BANYAN_DEVICE void copy(const float* from, int thread, float* to) const {
    for (int64_t c = 4 * thread; c < a.head_dim; c += 4 * kWarp) {
      store_four<N>(to, c, a.head_dim, load_four<N>(from, c, a.head_dim));
    }
  }

  template <int N, class Block, class Heads, class RowOf>
  BANYAN_DEVICE void norm(Block& block, Heads& heads, const RowOf& row_of) const {
    if (a.q_weight == nullptr && a.k_weight == nullptr && a.v_weight == nullptr) return;
    auto dim = static_cast<int>(a.normed_columns());
    typename Block::template PerThread<typename Norm::Kept> kept;
    auto squares = block.reduce_warps(
        [&](int thread) {
          if (heads[thread].weight == nullptr) return 0.0f;
          RowSource<N> x = {row_of(thread), dim}, weight = {heads[thread].weight, dim};
          return Norm::squares(thread % kWarp, x, weight, kept[thread]);
        },
        Plus());
    block.each([&](int thread) {
      if (heads[thread].weight == nullptr) return;
      float* row = row_of(thread);
      int first = thread % kWarp * 4;
      Norm::template scale<N>(thread % kWarp, Norm::factor(squares[thread], dim, a.eps), {row, dim},
                              {heads[thread].weight, dim}, kept[thread], [&](int c, const Four& y) {
                                store_four<N>(row + first, c, dim - first, y);
                              });
    });
  }

  template <class Block, class Heads, class RowOf>
  BANYAN_DEVICE void rotate(Block& block, Heads& heads, const RowOf& row_of) const {
    if (a.pairs == 0) return;
    block.each([&](int thread) {
      const Head& head = heads[thread];
      if (head.cos == nullptr) return;
      float* row = row_of(thread) + a.split;
      BANYAN_NO_UNROLL
      for (int64_t i = thread % kWarp; i < a.pairs; i += kWarp) {
        rotate_pair(a.layout, a.pairs, i, head.cos[i], head.sin[i], row, row);
      }
    });
  }

  template <int N, class Block, class Heads, class RowOf>
  BANYAN_DEVICE void keep(Block& block, Heads& heads, const RowOf& row_of) const {
    block.each([&](int thread) {
      const Head& head = heads[thread];
      if (head.q_out != nullptr) copy<N>(row_of(thread), thread % kWarp, head.q_out);
      if constexpr (!kIsCode<S>) {
        if (head.to != nullptr) store_columns(row_of(thread), thread % kWarp, head.to);
      }
    });
    if constexpr (kIsCode<S>) {
      keep_codes(block, heads, row_of, 0);
      if (a.split > 0) keep_codes(block, heads, row_of, 1);
    }
  }

  // The columns before the split, or from there on. The lanes of a warp store what store_row()
  // does.
  template <class Block, class Heads, class RowOf>
  BANYAN_DEVICE void keep_codes(Block& block, Heads& heads, const RowOf& row_of, int part) const {
    int64_t begin = part == 0 ? 0 : a.split, end = part == 0 ? a.normed_columns() : a.head_dim;
    auto largest = block.reduce_warps(
        [&](int thread) {
          float most = 0;
          if (heads[thread].to == nullptr) return most;
          for (int64_t c = begin + thread % kWarp; c < end; c += kWarp) {
            most = Largest()(most, magnitude_for_scale(row_of(thread)[c]));
          }
          return most;
        },
        Largest());
    int64_t codes_end = end < a.head_dim ? end : shape_of_row().code_bytes();
    block.each([&](int thread) {
      S* to = heads[thread].to;
      if (to == nullptr) return;
      ColumnCodes<S> code(largest[thread]);
      for (int64_t c = begin + thread % kWarp; c < codes_end; c += kWarp) {
        to[c] = c < end ? code(row_of(thread)[c]) : S{};
      }
      auto* scales = reinterpret_cast<float*>(to + shape_of_row().code_bytes());
      if (thread % kWarp == 0) scales[part] = code.scale();
    });
  }
  BANYAN_DEVICE void store_columns(const float* x, int thread, S* to) const {
    using Write = PageWrite<S>;
    if (a.head_dim % Write::kColumns == 0 && begins_fours(a.k_pool) && begins_fours(a.v_pool)) {
      for (int64_t part = thread; part < a.head_dim / Write::kColumns; part += kWarp) {
        Write::template store_columns<Write::kColumns>(x, to, part);
      }
    } else {
      for (int64_t c = thread; c < a.head_dim; c += kWarp) {
        Write::template store_columns<1>(x, to, c);
      }
    }
  }
};

}  // namespace banyan::cuda
