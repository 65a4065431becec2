// What kernels with states in slots share: a block runs one head of one span, chunk by chunk over
// the prompt and row by row from there on (kernels/slots.h is the same for CPUs).
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

// Runs kernel.prefill_form(block, head, first, n) for each chunk of the prompt, or part of one,
// then kernel.decode_form(block, head, i) for each row.
template <class Block, class Kernel, class Head>
BANYAN_DEVICE void run_head_forms(Block& block, const Kernel& kernel, int64_t s, const Head& head) {
  const SlotSpans& spans = kernel.a.spans;
  const SpanArgs& span = spans.spans[s];
  if (span.first_position == 0) {
    for_each(block, head.state_size(), [&](int64_t i) { head.state[i] = 0; });
  }
  int64_t prompt_rows =
      least(int64_t{spans.prompt_tokens[s]} - span.first_position, span.row_count);
  int64_t i = 0;
  while (i < prompt_rows) {
    int64_t n = least(prompt_rows - i, kernel.a.chunk);
    kernel.prefill_form(block, head, i, n);
    i += n;
    capture_state(block, spans, s, span.first_position + i - 1, head);
  }
  for (; i < span.row_count; ++i) {
    kernel.decode_form(block, head, i);
    capture_state(block, spans, s, span.first_position + i, head);
  }
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
