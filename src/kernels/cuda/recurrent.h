// Linear attention with a constant decay, selective state spaces and short convolutions (the
// definitions are in kernels/portable/recurrent.cpp and state_space.cpp). Threads share the columns
// of values; a column's sums are those of the portable kernels, in their order.
#pragma once

#include "kernels/cuda/slots.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

struct LinearAttention {
  LinearAttentionArgs a;
  Shape shape() const { return slot_shape(a, a.chunk * sizeof(float), 0); }
  using Head = HeadOf<LinearAttentionArgs>;

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    run_all_heads(block, *this);
  }

  // The decay of a state over `steps` positions.
  BANYAN_DEVICE float decay(const Head& head, int64_t steps) const {
    return exp(a.log_decay[head.head] * steps);
  }
  // Column d of q_i S.
  BANYAN_DEVICE float read_state(const Head& head, int64_t i, int64_t d) const {
    float sum = 0;
    for (int64_t c = 0; c < a.key_dim; ++c) sum += head.q(i)[c] * head.state[c * a.value_dim + d];
    return sum;
  }

  template <class Block>
  BANYAN_DEVICE void prefill_form(Block& block, const Head& head, int64_t first, int64_t n) const {
    auto* scores = block.template shared<float>();
    for (int64_t i = 0; i < n; ++i) {
      for_each(block, i + 1, [&](int64_t j) {
        scores[j] = decay(head, i - j) * dot(head.q(first + i), head.k(first + j), a.key_dim);
      });
      for_each(block, a.value_dim, [&](int64_t d) {
        float out = read_state(head, first + i, d) * decay(head, i + 1);
        for (int64_t j = 0; j <= i; ++j) out += scores[j] * head.v(first + j)[d];
        head.out(first + i)[d] = out * a.scale;
      });
    }
    for_each(block, head.state_size(), [&](int64_t item) {
      int64_t c = quotient(item, a.value_dim), d = item - c * a.value_dim;
      float s = head.state[item] * decay(head, n);
      for (int64_t j = 0; j < n; ++j) {
        s += decay(head, n - 1 - j) * head.k(first + j)[c] * head.v(first + j)[d];
      }
      head.state[item] = s;
    });
  }

  static constexpr bool kCorrects = false;
  BANYAN_DEVICE int64_t decays() const { return 0; }
  BANYAN_DEVICE float decay_at(const Head& head, int64_t, int64_t) const { return decay(head, 1); }
  BANYAN_DEVICE float key_factor(const Head&, int64_t) const { return 1; }
  BANYAN_DEVICE float query_factor() const { return 1; }
  BANYAN_DEVICE float output(const Head&, int64_t, int64_t, float sum) const {
    return sum * a.scale;
  }
};

struct StateSpace {
  StateSpaceArgs a;
  Shape shape() const { return slot_shape(a, 2 * a.chunk * sizeof(float), 0); }
  using Head = HeadOf<StateSpaceArgs>;

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    run_all_heads(block, *this);
  }

  BANYAN_DEVICE float decay(const Head& head, int64_t i) const {
    return a.decay[(head.first_row + i) * a.heads + head.head];
  }
  BANYAN_DEVICE float step(const Head& head, int64_t i) const {
    return a.step[(head.first_row + i) * a.heads + head.head];
  }
  // Column d of factor q_i S + skip v_i.
  BANYAN_DEVICE float read_state(const Head& head, int64_t i, float factor, int64_t d) const {
    float sum = 0;
    for (int64_t c = 0; c < a.key_dim; ++c) {
      sum += factor * head.q(i)[c] * head.state[c * a.value_dim + d];
    }
    return sum + a.skip[head.head] * head.v(i)[d];
  }

  // weights[j] = step_j times the product of the decays of rows j + 1 to i, downwards from row i.
  BANYAN_DEVICE void weigh(const Head& head, int64_t first, int64_t i, float* weights) const {
    float kept = 1;
    for (int64_t j = i; j >= 0; --j) {
      weights[j] = kept * step(head, first + j);
      kept *= decay(head, first + j);
    }
  }

  template <class Block>
  BANYAN_DEVICE void prefill_form(Block& block, const Head& head, int64_t first, int64_t n) const {
    auto* weights = block.template shared<float>();
    auto* scores = weights + a.chunk;
    float total = 1;
    for (int64_t i = 0; i < n; ++i) {
      total *= decay(head, first + i);
      block.one([&] { weigh(head, first, i, weights); });
      for_each(block, i + 1, [&](int64_t j) {
        scores[j] = weights[j] * dot(head.q(first + i), head.k(first + j), a.key_dim);
      });
      for_each(block, a.value_dim, [&](int64_t d) {
        float out = read_state(head, first + i, total, d);
        for (int64_t j = i; j >= 0; --j) out += scores[j] * head.v(first + j)[d];
        head.out(first + i)[d] = out;
      });
    }
    for_each(block, head.state_size(), [&](int64_t item) {
      int64_t c = quotient(item, a.value_dim), d = item - c * a.value_dim;
      float s = head.state[item] * total;
      for (int64_t j = n - 1; j >= 0; --j) {
        s += weights[j] * head.k(first + j)[c] * head.v(first + j)[d];
      }
      head.state[item] = s;
    });
  }

  static constexpr bool kCorrects = false;
  BANYAN_DEVICE int64_t decays() const { return 1; }
  BANYAN_DEVICE float decay_at(const Head& head, int64_t i, int64_t) const {
    return decay(head, i);
  }
  BANYAN_DEVICE float key_factor(const Head& head, int64_t i) const { return step(head, i); }
  BANYAN_DEVICE float query_factor() const { return 1; }
  BANYAN_DEVICE float output(const Head& head, int64_t i, int64_t d, float sum) const {
    return sum + a.skip[head.head] * head.v(i)[d];
  }
};

struct StateSpaceGates {
  StateSpaceGatesArgs a;
  Shape shape() const { return {.blocks = blocks_for(a.rows * a.heads)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.rows * a.heads, [&](int64_t i) {
      int64_t r = quotient(i, a.heads), h = i - r * a.heads;
      float step = softplus(a.step_logits[r * a.logits_row_stride + h] + a.bias[h]);
      step = step < a.step_min ? a.step_min : step;
      step = step > a.step_max ? a.step_max : step;
      a.step[i] = step;
      a.decay[i] = exp(-exp(a.log_rate[h]) * step);
    });
  }
};

// A thread runs one channel of some rows of a span. The one that has the first rows, which alone
// read the state and the log, then keeps what it needs of the state while it writes over it: each
// input moves from a later row of the state to an earlier one. The log's row is the input.
struct ShortConv {
  static constexpr int64_t kRows = 16, kPieces = 16;  // of a thread; of a span at once

  ShortConvArgs a;
  BANYAN_HOST_DEVICE int64_t blocks_across() const {
    return (a.channels + kBlockThreads - 1) / kBlockThreads;
  }
  Shape shape() const { return {.blocks = a.spans.count * blocks_across() * kPieces}; }

  // One channel of a span.
  struct Channel {
    const SpanArgs& span;
    SpanLog<OnDevice> log;
    float* state;  // [taps - 1, channels]
    int64_t c;
  };

  BANYAN_DEVICE float* state_in(int64_t slot) const {
    return a.states + slot * (a.taps - 1) * a.channels;
  }
  // Row i of the span; if negative, one of the log or, before these, of the state.
  BANYAN_DEVICE float input(const Channel& of, int64_t i) const {
    if (i >= 0) return a.x[(of.span.row_begin + i) * a.x_row_stride + of.c];
    int64_t logged = of.log.rows.replayed + of.log.rows.held;
    if (i >= -logged) return of.log.row(logged + i)[of.c];
    return of.state[(a.taps - 1 + logged + i) * a.channels + of.c];
  }
  // The inputs before row i.
  BANYAN_DEVICE void save(const Channel& of, int64_t i, float* to) const {
    for (int64_t j = 0; j < a.taps - 1; ++j) {
      to[j * a.channels + of.c] = input(of, i - (a.taps - 1) + j);
    }
  }

  // Rows [first, end) of a channel.
  BANYAN_DEVICE void run(const Channel& of, int64_t first, int64_t end) const {
    for (int64_t i = first; i < end; ++i) {
      float sum = a.bias != nullptr ? a.bias[of.c] : 0;
      for (int64_t j = 0; j < a.taps; ++j) {
        sum += a.weight[j * a.channels + of.c] * input(of, i - (a.taps - 1) + j);
      }
      a.y[(of.span.row_begin + i) * a.channels + of.c] = a.silu ? sum / (1.0f + exp(-sum)) : sum;
    }
  }

  BANYAN_DEVICE void clear(const Channel& of) const {
    for (int64_t j = 0; j < a.taps - 1 && of.span.first_position == 0; ++j) {
      of.state[j * a.channels + of.c] = 0;
    }
  }
  // Captures, the state and the log after the span.
  BANYAN_DEVICE void keep(const Channel& of, int64_t s) const {
    const DraftRows& rows = of.log.rows;
    int64_t known = of.span.row_count - rows.count;
    for (int64_t j = 0; j < a.spans.capture_count; ++j) {
      const Capture& capture = a.spans.captures[j];
      int64_t i = capture.position - of.span.first_position;
      if (capture.span == s && i >= -rows.replayed && i < known) {
        save(of, i + 1, state_in(capture.slot));
      }
    }
    save(of, known - rows.held, of.state);
    for (int64_t j = 0; j < rows.count; ++j) of.log.row(rows.held + j)[of.c] = input(of, known + j);
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t across = blocks_across(), rows = kRows < a.taps ? a.taps : kRows;
    int64_t next = block.index();  // counted from the span's first piece
    for (int64_t s = 0; s < a.spans.count; ++s) {
      const SpanArgs& span = a.spans.spans[s];
      int64_t items = quotient(span.row_count + rows - 1, rows) * across;
      for (; next < items; next += block.count()) {
        int64_t piece = quotient(next, across), c = (next - piece * across) * kBlockThreads;
        block.each([&](int thread) {
          if (c + thread >= a.channels) return;
          Channel of{span, {a.spans, s, a.channels}, state_in(a.spans.slots[s]), c + thread};
          if (piece == 0) clear(of);
          run(of, piece * rows, least((piece + 1) * rows, span.row_count));
          if (piece == 0) keep(of, s);
        });
      }
      next -= items;
    }
  }
};

}  // namespace banyan::cuda
