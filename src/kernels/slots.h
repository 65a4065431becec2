// The iteration shared by all CPU kernels with states in slots: which rows use which form, where a
// state is cleared and captured, and what becomes of draft rows.
//
// In the decode form a row is an update S = D S + key^T value. Known rows, draft rows and replays
// all apply it by the same code, so their bits are the same.
//
// Included by files of several instruction sets, so everything is static or a template over what
// differs between them (`Isa`): see x86/vec_avx512.h.
#pragma once

#include <cstdint>

#include "kernels/launch.h"
#include "kernels/scratch.h"
#include "kernels/slot_rows.h"

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
        state(state_in(a.spans.slots[span])),
        from(state) {}

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
  float* state;       // [key_dim, value_dim], written by a row
  const float* from;  // read by it: the same memory, except for the first draft row
};

// A row's update of a head's state, in the log or in scratch memory.
struct Update {
  float* decay;  // [decays]; none if the decay is constant
  float* key;    // [key_dim], with the factor of the row
  float* value;  // [value_dim]
};

// The updates of one span's draft rows, and how the span uses them. `User` reads them.
template <class User>
struct SpanLog {
  constexpr SpanLog(const SlotSpans& spans, int64_t span, int64_t width) : width(width) {
    if (spans.drafts == nullptr) return;
    rows = spans.drafts[span];
    data = spans.log.data + spans.log.units[span] * spans.log.rows * width;
  }
  constexpr float* row(int64_t j) const { return data + j * width; }

  DraftRows rows = {};
  float* data = nullptr;
  int64_t width;
};

// Calls body(slot) for every capture of span `span` after `position`.
template <class Body>
static constexpr void for_captures(const SlotSpans& spans, int64_t span, int64_t position,
                                   const Body& body) {
  for (const Capture* c = spans.captures; c < spans.captures + spans.capture_count; ++c) {
    if (c->span == span && c->position == position) body(c->slot);
  }
}

// Draft rows continue from the state without changing it.
template <class Head, class Logged>
static inline void run_drafts(Head& head, const DraftRows& rows, int64_t known, float* scratch,
                              const Logged& logged) {
  head.state = scratch;
  for (int64_t j = 0; j < rows.held; ++j) {
    head.replay(logged(j));
    head.from = head.state;
  }
  for (int64_t j = 0; j < rows.count; ++j) {
    head.decode_form(known + j, logged(rows.held + j));
    head.from = head.state;
  }
}

// Runs one head over its span: head.replay(update) for each update from the log,
// head.prefill_form(first, n) for each chunk of the prompt (or part of one), then
// head.decode_form(i, update) for each row.
template <class Head>
static inline void run_forms(const SlotSpans& spans, int64_t s, int64_t chunk, Head& head) {
  const SpanArgs& span = spans.spans[s];
  int64_t decays = head.decays(), key_dim = head.args.key_dim;
  int64_t width = update_width(decays, key_dim, head.args.value_dim);
  SpanLog<Head> log(spans, s, width * head.args.heads);
  auto update_at = [&](float* x) { return Update{x, x + decays, x + decays + key_dim}; };
  auto logged = [&](int64_t j) { return update_at(log.row(j) + head.head * width); };
  auto capture = [&](int64_t row) {
    for_captures(spans, s, span.first_position + row, [&](int64_t slot) {
      float* to = head.state_in(slot);
      for (int64_t i = 0; i < head.state_size(); ++i) to[i] = head.state[i];
    });
  };
  if (span.first_position == 0) {
    for (int64_t i = 0; i < head.state_size(); ++i) head.state[i] = 0;
  }
  for (int64_t j = 0; j < log.rows.replayed; ++j) {
    head.replay(logged(j));
    capture(j - log.rows.replayed);
  }
  int64_t known = span.row_count - log.rows.count;
  int64_t prompt = prompt_rows(spans, s), i = 0;
  while (i < prompt) {
    int64_t n = prompt - i < chunk ? prompt - i : chunk;
    head.prefill_form(i, n);
    i += n;
    capture(i - 1);
  }
  if (i == span.row_count) return;
  float* scratch = worker_scratch(width + (log.rows.count > 0 ? head.state_size() : 0));
  float* draft_state = scratch + width;
  for (; i < known; ++i) {
    head.decode_form(i, update_at(scratch));
    capture(i);
  }
  if (log.rows.count > 0) run_drafts(head, log.rows, known, draft_state, logged);
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
