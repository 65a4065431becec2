// What kernels with states in slots share: a block runs one head of one span, chunk by chunk over
// the prompt and row by row from there on (kernels/slots.h is the same for CPUs). Threads share the
// columns of a state.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/slots.h"

namespace banyan::cuda {

struct OnDevice {};  // stands for the vector class in templates that take one

template <class Args>
using HeadOf = SlotHead<OnDevice, Args>;

// The product of two vectors, in ascending order.
BANYAN_HOST_DEVICE constexpr float dot(const float* x, const float* y, int64_t count) {
  float sum = 0;
  for (int64_t c = 0; c < count; ++c) sum += x[c] * y[c];
  return sum;
}

template <class Block, class Head>
BANYAN_DEVICE void capture_state(Block& block, const SlotSpans& spans, int64_t span,
                                 int64_t position, const Head& head) {
  for_captures(spans, span, position, [&](int64_t slot) {
    float* to = head.state_in(slot);
    for_each(block, head.state_size(), [&](int64_t i) { to[i] = head.state[i]; });
  });
}

// A column of a head's state, which a thread holds in registers.
template <int KeyDim, int ValueDim>
class RegisterColumn {
 public:
  template <class Head>
  BANYAN_DEVICE RegisterColumn(const Head& head, int64_t d) : state_(head.state + d) {
    BANYAN_UNROLL
    for (int c = 0; c < KeyDim; ++c) values_[c] = state_[c * ValueDim];
  }

  // Replaces each value by body(c, value).
  template <class Body>
  BANYAN_DEVICE void each(const Body& body) {
    BANYAN_UNROLL
    for (int c = 0; c < KeyDim; ++c) values_[c] = body(c, values_[c]);
  }
  // To the same column of another state.
  BANYAN_DEVICE void copy_to(float* state) const {
    BANYAN_UNROLL
    for (int c = 0; c < KeyDim; ++c) state[c * ValueDim] = values_[c];
  }
  // Stores the column in the state.
  BANYAN_DEVICE void store() const { copy_to(state_); }
  // What follows does not change the state; a column in memory goes on in `scratch`.
  BANYAN_DEVICE void leave_state(float* /*scratch*/) {}

 private:
  float* state_;
  float values_[KeyDim];
};

// The same of any height, in memory.
class MemoryColumn {
 public:
  template <class Head>
  BANYAN_DEVICE MemoryColumn(const Head& head, int64_t d)
      : from_(head.state + d),
        to_(head.state + d),
        d_(d),
        key_dim_(head.args.key_dim),
        stride_(head.args.value_dim) {}

  template <class Body>
  BANYAN_DEVICE void each(const Body& body) {
    for (int64_t c = 0; c < key_dim_; ++c) to_[c * stride_] = body(c, from_[c * stride_]);
    from_ = to_;
  }
  BANYAN_DEVICE void copy_to(float* state) const {
    for (int64_t c = 0; c < key_dim_; ++c) state[c * stride_] = from_[c * stride_];
  }
  BANYAN_DEVICE void store() const {}
  BANYAN_DEVICE void leave_state(float* scratch) { to_ = scratch + d_; }

 private:
  const float* from_;
  float* to_;
  int64_t d_, key_dim_, stride_;
};

// Whether a head's columns fit into registers: heads of nearly every model.
inline constexpr int kRegisterDim = 128;
template <class Args>
BANYAN_HOST_DEVICE bool in_registers(const Args& a) {
  return a.key_dim == kRegisterDim && a.value_dim == kRegisterDim;
}

// Of a block: the state that draft rows of a head continue in, unless registers hold it.
template <class Args>
size_t draft_state_bytes(const Args& a) {
  bool in_memory = a.spans.drafts != nullptr && !in_registers(a);
  return in_memory ? a.key_dim * a.value_dim * sizeof(float) : 0;
}

// The updates of the draft rows of one head of a span.
template <class Kernel, class Head>
struct HeadLog {
  BANYAN_DEVICE HeadLog(const Kernel& kernel, int64_t span, const Head& head)
      : decays(kernel.decays()),
        key_dim(head.args.key_dim),
        width(update_width(decays, key_dim, head.args.value_dim)),
        log(kernel.a.spans, span, width * head.args.heads),
        head(head.head) {}
  BANYAN_DEVICE const DraftRows& rows() const { return log.rows; }
  BANYAN_DEVICE Update update(int64_t j) const {
    float* of_head = log.row(j) + head * width;
    return {of_head, of_head + decays, of_head + decays + key_dim};
  }

  int64_t decays, key_dim, width;
  SpanLog<OnDevice> log;
  int64_t head;
};

// Column d of a head over a span's replays, its known rows from `first` on and its draft rows.
template <class Column, class Kernel, class Head>
BANYAN_DEVICE void run_column(const Kernel& kernel, const HeadLog<Kernel, Head>& log, int64_t s,
                              const Head& head, int64_t first, int64_t d, float* scratch) {
  const SpanArgs& span = kernel.a.spans.spans[s];
  const DraftRows& rows = log.rows();
  Column column(head, d);
  auto capture = [&](int64_t row) {
    for_captures(kernel.a.spans, s, span.first_position + row,
                 [&](int64_t slot) { column.copy_to(head.state_in(slot) + d); });
  };
  int64_t known = span.row_count - rows.count;
  if (rows.held > 0) column.leave_state(scratch);  // no row is known
  for (int64_t j = 0; j < rows.replayed + rows.held; ++j) {
    kernel.replay(column, head, log.update(j), d);
    if (rows.held == 0) capture(j - rows.replayed);
  }
  for (int64_t i = first; i <= span.row_count; ++i) {
    if (i == known && rows.held == 0) {
      column.store();
      column.leave_state(scratch);
    }
    if (i == span.row_count) return;
    float value = kernel.decode(column, head, i, d);
    if (i < known) {
      capture(i);
    } else {
      log.update(rows.held + i - known).value[d] = value;
    }
  }
}

// Runs kernel.prefill_form(block, head, first, n) for each chunk of the prompt, or part of one.
// From there on threads are by themselves, since columns are: kernel.replay(column, head, update,
// d) for each update from the log, then kernel.decode(column, head, i, d), which returns the value
// of the row's update, for each row. At last kernel.log_key(head, i, c, update) for each draft row.
template <class Block, class Kernel, class Head>
BANYAN_DEVICE void run_head_forms(Block& block, const Kernel& kernel, int64_t s, const Head& head) {
  const SlotSpans& spans = kernel.a.spans;
  const SpanArgs& span = spans.spans[s];
  HeadLog<Kernel, Head> log(kernel, s, head);
  const DraftRows& rows = log.rows();
  if (span.first_position == 0) {
    for_each(block, head.state_size(), [&](int64_t i) { head.state[i] = 0; });
  }
  int64_t known = span.row_count - rows.count;
  int64_t prompt_rows = least(int64_t{spans.prompt_tokens[s]} - span.first_position, known);
  int64_t i = 0;
  while (i < prompt_rows) {
    int64_t n = least(prompt_rows - i, kernel.a.chunk);
    kernel.prefill_form(block, head, i, n);
    i += n;
    capture_state(block, spans, s, span.first_position + i - 1, head);
  }
  if (i == span.row_count) return;
  auto* scratch = reinterpret_cast<float*>(block.scratch());
  for_each(block, kernel.a.value_dim, [&](int64_t d) {
    if (in_registers(kernel.a)) {
      run_column<RegisterColumn<kRegisterDim, kRegisterDim>>(kernel, log, s, head, i, d, scratch);
    } else {
      run_column<MemoryColumn>(kernel, log, s, head, i, d, scratch);
    }
  });
  // Not before all columns have read the updates that these replace.
  if (rows.count == 0) return;
  for_each(block, kernel.a.key_dim, [&](int64_t c) {
    for (int64_t j = 0; j < rows.count; ++j) {
      kernel.log_key(head, known + j, c, log.update(rows.held + j));
    }
  });
}

template <class Block, class Kernel>
BANYAN_DEVICE void run_all_heads(Block& block, const Kernel& kernel) {
  const auto& a = kernel.a;
  for (int64_t item = block.index(); item < a.spans.count * a.heads; item += block.count()) {
    int64_t span = quotient(item, a.heads);
    HeadOf<std::decay_t<decltype(a)>> head(a, span, item - span * a.heads);
    run_head_forms(block, kernel, span, head);
  }
}

}  // namespace banyan::cuda
