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

static inline void copy_floats(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// y = factor x.
template <class V>
inline void scale(float factor, const float* x, float* y, int64_t count) {
  for (int64_t c = 0; c < count; c += V::kLanes) {
    auto product = V::mul(V::set(factor), load_up_to<V>(x + c, count - c));
    store_up_to<V>(y + c, count - c, product);
  }
}

// One row's update of a head's state, S = D S + key^T value. Columns of the state are independent.
template <class V>
struct StateRow {
  template <class Head>
  StateRow(const Head& head, const Update& update)
      : key(update.key),
        from(head.from),
        state(head.state),
        key_dim(head.args.key_dim),
        value_dim(head.args.value_dim) {}

  void decay_alike(float factor) {
    for (int64_t c = 0; c < key_dim; ++c) decay[c] = factor;
  }

  float decay[kHeadDimMax];  // [key_dim]
  const float *key, *from;
  float* state;
  int64_t key_dim, value_dim;
};

// Updates the panel at `column` by its part of the value; calls use(c, state) for each of its rows.
template <class V, int N, class Use>
inline void update_panel(const StateRow<V>& row, int64_t column, int64_t lanes,
                         const Panel<V, N>& value, const Use& use) {
  for (int64_t c = 0; c < row.key_dim; ++c) {
    int64_t at = c * row.value_dim + column;
    auto state = Panel<V, N>::load(row.from + at, lanes);
    state.scale(row.decay[c]);
    state.add(row.key[c], value);
    state.store(row.state + at, lanes);
    use(c, state);
  }
}

// The same, and out = scale q S of the panel.
template <class V, int N>
inline Panel<V, N> decode_panel(const StateRow<V>& row, int64_t column, int64_t lanes,
                                const Panel<V, N>& value, const float* q, float scale) {
  auto out = Panel<V, N>::zero();
  update_panel<V, N>(row, column, lanes, value,
                     [&](int64_t c, const auto& state) { out.add(q[c], state); });
  out.scale(scale);
  return out;
}

// The update as it was logged.
template <class V>
inline void replay_row(const StateRow<V>& row, const float* value) {
  for_panels<V>(row.value_dim, [&]<int N>(int64_t column, int64_t lanes) {
    update_panel<V, N>(row, column, lanes, Panel<V, N>::load(value + column, lanes),
                       [](int64_t, const auto&) {});
  });
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

  int64_t decays() const { return 0; }

  StateRow<V> row_of(const Update& u) const {
    StateRow<V> row(*this, u);
    row.decay_alike(decay[1]);
    return row;
  }

  void replay(const Update& u) { replay_row<V>(row_of(u), u.value); }

  void decode_form(int64_t i, const Update& u) {
    copy_floats(this->k(i), this->args.key_dim, u.key);
    StateRow<V> row = row_of(u);
    for_panels<V>(row.value_dim, [&]<int N>(int64_t column, int64_t lanes) {
      auto value = Panel<V, N>::load(this->v(i) + column, lanes);
      value.store(u.value + column, lanes);
      auto out = decode_panel<V, N>(row, column, lanes, value, this->q(i), this->args.scale);
      out.store(this->out(i) + column, lanes);
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
    SpanLog<V> log(a.spans, s, a.channels);
    auto [drafts, replayed, held] = log.rows;
    int64_t logged = replayed + held, known = span.row_count - drafts;
    auto input = [&](int64_t i) -> const float* {
      if (i >= 0) return a.x + (span.row_begin + i) * a.x_row_stride;
      return i >= -logged ? log.row(logged + i) : state + (past + logged + i) * a.channels;
    };
    auto save = [&](int64_t i, float* to) {  // as in portable/recurrent.cpp
      for (int64_t j = 0; j < past; ++j) {
        copy_floats(input(i - past + j) + begin, end - begin, to + j * a.channels + begin);
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
    }
    for (int64_t i = -replayed; i < known; ++i) {
      for_captures(a.spans, s, span.first_position + i,
                   [&](int64_t slot) { save(i + 1, a.states + slot * past * a.channels); });
    }
    save(known - held, state);
    for (int64_t j = 0; j < drafts; ++j) {
      copy_floats(input(known + j) + begin, end - begin, log.row(held + j) + begin);
    }
  };
  constexpr int64_t kLine = 16;  // channels per cache line, so that workers do not share lines
  parallel_for(a.launch, a.channels, kLine, [&](int64_t begin, int64_t end) {
    for (int64_t s = 0; s < a.spans.count; ++s) run_span(s, begin, end);
  });
}

}  // namespace banyan::simd
