// Linear attention and short convolutions, whose state is in a slot. Formulas are cited in
// portable/recurrent.cpp.
//
// The prefill form processes a chunk in blocks of kBlock rows: the work per row within a block
// grows with its size, the work on the state does not.
#pragma once

#include "kernels/portable/portable.h"
#include "kernels/slots.h"
#include "kernels/vector/dot.h"
#include "kernels/vector/product.h"

namespace banyan::simd {

constexpr int64_t kBlock = 16;
constexpr int64_t kHeadDimMax = 256;  // scratch size; larger heads use the portable kernel

// Calls head.run_block(first row, rows) for each block of a chunk.
template <class Head>
static inline void for_blocks(Head& head, int64_t first, int64_t n) {
  for (int64_t i = 0; i < n; i += kBlock) {
    head.run_block(first + i, n - i < kBlock ? n - i : kBlock);
  }
}

// y = factor x.
template <class V>
inline void scale(float factor, const float* x, float* y, int64_t count) {
  for (int64_t c = 0; c < count; c += V::kLanes) {
    auto product = V::mul(V::set(factor), load_up_to<V>(x + c, count - c));
    store_up_to<V>(y + c, count - c, product);
  }
}

// One row of the decode form, with u = beta (v - k D S), or u = v for plain linear attention:
//   S = D S + k^T u,  out = scale q S.
// Columns of the state are independent, so each panel of columns does both in one pass.
struct DecodeRow {
  const float *q, *k, *v;
  const float* decay;  // [key_dim]
  float* state;        // [key_dim, value_dim]
  float* out;
  int64_t key_dim, value_dim;
  float scale;
};

// The panel of `row` at `column`, with u = `update`.
template <class V, int N>
inline void decode_panel(const DecodeRow& row, int64_t column, int64_t lanes,
                         const Panel<V, N>& update) {
  auto out = Panel<V, N>::zero();
  for (int64_t c = 0; c < row.key_dim; ++c) {
    float* at = row.state + c * row.value_dim + column;
    auto state = Panel<V, N>::load(at, lanes);
    state.scale(row.decay[c]);
    state.add(row.k[c], update);
    state.store(at, lanes);
    out.add(row.q[c], state);
  }
  out.scale(row.scale);
  out.store(row.out + column, lanes);
}

// Calls score(i, j, q_i . k_j) for every j <= i < n, counting rows from `first`.
template <class V, class Head, class Score>
inline void for_scores(const Head& head, int64_t first, int64_t n, const Score& score) {
  for (int64_t i = 0; i < n; i += V::kTileRows) {
    int64_t rows = n - i < V::kTileRows ? n - i : V::kTileRows;
    const float* queries[V::kTileRows];
    for (int64_t r = 0; r < rows; ++r) queries[r] = head.q(first + i + r);
    for (int64_t j = 0; j < i + rows; j += kTileOutputs) {
      const float* keys[kTileOutputs];
      float sums[V::kTileRows][kTileOutputs];
      for (int64_t b = 0; b < kTileOutputs; ++b) keys[b] = head.k(first + (j + b < n ? j + b : j));
      dot_tile_of<V>(rows, queries, keys, head.args.key_dim, sums);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < kTileOutputs && j + b <= i + r; ++b) {
          score(i + r, j + b, sums[r][b]);
        }
      }
    }
  }
}

// out = q S for `n` rows from `first`, where S is the state before the block.
template <class V, class Head>
inline void read_state(const Head& head, int64_t first, int64_t n) {
  const auto& a = head.args;
  multiply<V>({.a = head.q(first),
               .a_row_stride = a.q_row_stride,
               .a_column_stride = 1,
               .b = head.state,
               .b_row_stride = a.value_dim,
               .c = head.out(first),
               .c_row_stride = a.heads * a.value_dim,
               .kept = nullptr,
               .rows = n,
               .depth = a.key_dim,
               .columns = a.value_dim});
}

// out_i = finish(left_i out_i + sum_{j <= i} scores_ij v_j, v_i). `left` is the decay of the
// initial state up to each row; `out` holds q S on entry.
template <class V, class Head, class Finish>
inline void add_values(const Head& head, int64_t first, int64_t n, const float* left,
                       const float (*scores)[kBlock], const Finish& finish) {
  for_panels<V>(head.args.value_dim, [&]<int N>(int64_t column, int64_t lanes) {
    for (int64_t i = 0; i < n; ++i) {
      float* at = head.out(first + i) + column;
      auto value = [&](int64_t j) { return Panel<V, N>::load(head.v(first + j) + column, lanes); };
      auto out = Panel<V, N>::load(at, lanes);
      out.scale(left[i]);
      for (int64_t j = 0; j <= i; ++j) out.add(scores[i][j], value(j));
      finish(out, value(i));
      out.store(at, lanes);
    }
  });
}

// S = left S + sum_j keys_j^T v_j, with `keys` [n, key_dim] already decayed to the block's end.
template <class V, class Head>
inline void update_state(const Head& head, int64_t first, int64_t n, const float* keys,
                         float left) {
  const auto& a = head.args;
  float kept[kHeadDimMax];
  for (int64_t c = 0; c < a.key_dim; ++c) kept[c] = left;
  multiply<V>({.a = keys,
               .a_row_stride = 1,
               .a_column_stride = a.key_dim,
               .b = head.v(first),
               .b_row_stride = a.v_row_stride,
               .c = head.state,
               .c_row_stride = a.value_dim,
               .kept = kept,
               .rows = a.key_dim,
               .depth = n,
               .columns = a.value_dim});
}

template <class V>
struct LinearHead : SlotHead<V, LinearAttentionArgs> {
  LinearHead(const LinearAttentionArgs& a, int64_t span, int64_t head)
      : SlotHead<V, LinearAttentionArgs>(a, span, head) {
    for (int64_t steps = 0; steps <= kBlock; ++steps) {
      float exponent = a.log_decay[head] * static_cast<float>(steps);
      decay[steps] = V::lane0(exp<V>(V::set(exponent)));
    }
  }

  void prefill_form(int64_t first, int64_t n) { for_blocks(*this, first, n); }

  void decode_form(int64_t i) {
    const LinearAttentionArgs& a = this->args;
    float decays[kHeadDimMax];
    for (int64_t c = 0; c < a.key_dim; ++c) decays[c] = decay[1];
    DecodeRow row = {.q = this->q(i),
                     .k = this->k(i),
                     .v = this->v(i),
                     .decay = decays,
                     .state = this->state,
                     .out = this->out(i),
                     .key_dim = a.key_dim,
                     .value_dim = a.value_dim,
                     .scale = a.scale};
    for_panels<V>(a.value_dim, [&]<int N>(int64_t column, int64_t lanes) {
      decode_panel<V, N>(row, column, lanes, Panel<V, N>::load(row.v + column, lanes));
    });
  }

  void run_block(int64_t first, int64_t n) {
    const LinearAttentionArgs& a = this->args;
    float scores[kBlock][kBlock];
    alignas(64) float keys[kBlock * kHeadDimMax];
    for_scores<V>(*this, first, n, [&](int64_t i, int64_t j, float product) {
      scores[i][j] = decay[i - j] * product;
    });
    read_state<V>(*this, first, n);
    add_values<V>(*this, first, n, decay + 1, scores,
                  [&](auto& out, const auto&) { out.scale(a.scale); });
    for (int64_t j = 0; j < n; ++j) {
      scale<V>(decay[n - 1 - j], this->k(first + j), keys + j * a.key_dim, a.key_dim);
    }
    update_state<V>(*this, first, n, keys, decay[n]);
  }

  float decay[kBlock + 1];  // of the state, by number of positions
};

template <class V>
void linear_attention(const LinearAttentionArgs& a) {
  if (a.key_dim > kHeadDimMax) return portable::linear_attention(a);
  run_heads<LinearHead<V>>(a);
}

// Workers split the channels, so that only one of them touches a channel's state.
template <class V>
void short_conv(const ShortConvArgs& a) {
  int64_t past = a.taps - 1;
  auto run_span = [&](int64_t s, int64_t begin, int64_t end) {
    const SpanArgs& span = a.spans.spans[s];
    float* state = a.states + a.spans.slots[s] * past * a.channels;
    auto input = [&](int64_t i) -> const float* {
      if (i < 0) return state + (past + i) * a.channels;
      return a.x + (span.row_begin + i) * a.x_row_stride;
    };
    auto save = [&](int64_t i, float* to) {  // as in portable/recurrent.cpp
      for (int64_t j = 0; j < past; ++j) {
        const float* from = input(i - past + j);
        for (int64_t c = begin; c < end; ++c) to[j * a.channels + c] = from[c];
      }
    };
    if (span.first_position == 0) {
      for (int64_t j = 0; j < past; ++j) {
        for (int64_t c = begin; c < end; ++c) state[j * a.channels + c] = 0;
      }
    }
    for (int64_t i = 0; i < span.row_count; ++i) {
      float* y = a.y + (span.row_begin + i) * a.channels;
      for (int64_t c = begin; c < end; c += V::kLanes) {
        auto sum = a.bias != nullptr ? load_up_to<V>(a.bias + c, end - c) : V::set(0);
        for (int64_t j = 0; j < a.taps; ++j) {
          auto x = load_up_to<V>(input(i - past + j) + c, end - c);
          sum = V::fma(load_up_to<V>(a.weight + j * a.channels + c, end - c), x, sum);
        }
        if (a.silu) sum = V::div(sum, V::add(V::set(1), exp<V>(V::sub(V::set(0), sum))));
        store_up_to<V>(y + c, end - c, sum);
      }
      for_captures(a.spans, s, span.first_position + i,
                   [&](int64_t slot) { save(i + 1, a.states + slot * past * a.channels); });
    }
    save(span.row_count, state);
  };
  constexpr int64_t kLine = 16;  // channels per cache line, so that workers do not share lines
  parallel_for(a.launch, a.channels, kLine, [&](int64_t begin, int64_t end) {
    for (int64_t s = 0; s < a.spans.count; ++s) run_span(s, begin, end);
  });
}

}  // namespace banyan::simd
