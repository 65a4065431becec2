// The iteration shared by all CPU kernels with states in slots: which rows use which form, where a
// state is cleared and where it is captured.
//
// Included by files of several instruction sets, so everything is static or a template over what
// differs between them (`Isa`): see x86/vec_avx512.h.
#pragma once

#include <cstdint>

#include "kernels/launch.h"

namespace banyan {

// One head of one span of LinearAttentionArgs, DeltaAttentionArgs or StateSpaceArgs: its rows, from
// the span's first on, and its state.
template <class Isa, class Args>
struct SlotHead {
  constexpr SlotHead(const Args& a, int64_t span, int64_t head)
      : args(a),
        head(head),
        key_head(static_cast<uint32_t>(head) / static_cast<uint32_t>(a.group)),
        first_row(a.spans.spans[span].row_begin),
        state(state_in(a.spans.slots[span])) {}

  constexpr const float* q(int64_t i) const {
    return args.q + (first_row + i) * args.q_row_stride + key_head * args.key_dim;
  }
  constexpr const float* k(int64_t i) const {
    return args.k + (first_row + i) * args.k_row_stride + key_head * args.key_dim;
  }
  constexpr const float* v(int64_t i) const {
    return args.v + (first_row + i) * args.v_row_stride + head * args.value_dim;
  }
  constexpr float* out(int64_t i) const {
    return args.out + ((first_row + i) * args.heads + head) * args.value_dim;
  }
  constexpr float* state_in(int64_t slot) const {
    return args.states + (slot * args.heads + head) * state_size();
  }
  constexpr int64_t state_size() const { return args.key_dim * args.value_dim; }

  const Args& args;
  int64_t head, key_head, first_row;
  float* state;  // [key_dim, value_dim]
};

// Calls body(slot) for every capture of span `span` after `position`.
template <class Body>
static constexpr void for_captures(const SlotSpans& spans, int64_t span, int64_t position,
                                   const Body& body) {
  for (const Capture* c = spans.captures; c < spans.captures + spans.capture_count; ++c) {
    if (c->span == span && c->position == position) body(c->slot);
  }
}

// Runs one head over its span: head.prefill_form(first, n) for each chunk of the prompt (or part of
// one), then head.decode_form(i) for each row.
template <class Head>
static inline void run_forms(const SlotSpans& spans, int64_t s, int64_t chunk, Head& head) {
  const SpanArgs& span = spans.spans[s];
  auto capture = [&](int64_t row) {
    for_captures(spans, s, span.first_position + row, [&](int64_t slot) {
      float* to = head.state_in(slot);
      for (int64_t i = 0; i < head.state_size(); ++i) to[i] = head.state[i];
    });
  };
  if (span.first_position == 0) {
    for (int64_t i = 0; i < head.state_size(); ++i) head.state[i] = 0;
  }
  int64_t prompt_rows = int64_t{spans.prompt_tokens[s]} - span.first_position;
  if (prompt_rows > span.row_count) prompt_rows = span.row_count;
  int64_t i = 0;
  while (i < prompt_rows) {
    int64_t n = prompt_rows - i < chunk ? prompt_rows - i : chunk;
    head.prefill_form(i, n);
    i += n;
    capture(i - 1);
  }
  for (; i < span.row_count; ++i) {
    head.decode_form(i);
    capture(i);
  }
}

// Runs every head of every span of `a`; heads are interleaved over the workers.
template <class Head, class Args>
static inline void run_heads(const Args& a) {
  parallel_interleaved(a.launch, [&](int64_t first, int64_t step) {
    for (int64_t item = first; item < a.spans.count * a.heads; item += step) {
      Head head(a, item / a.heads, item % a.heads);
      run_forms(a.spans, item / a.heads, a.chunk, head);
    }
  });
}

}  // namespace banyan
