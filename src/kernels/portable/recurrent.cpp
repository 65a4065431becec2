// Layers whose memory is a state of fixed size in a slot.
#include <algorithm>
#include <cmath>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

// One head of one span: its rows, from the span's first on, and its state.
struct Head {
  Head(const LinearAttentionArgs& a, int64_t s, int64_t head)
      : args(a),
        key_offset(head * a.key_dim),
        value_offset(head * a.value_dim),
        first_row(a.spans[s].row_begin),
        log_decay(a.log_decay[head]),
        state(state_in(a.slots[s], head)) {}

  const float* q(int64_t i) const {
    return args.q + (first_row + i) * args.q_row_stride + key_offset;
  }
  const float* k(int64_t i) const {
    return args.k + (first_row + i) * args.k_row_stride + key_offset;
  }
  const float* v(int64_t i) const {
    return args.v + (first_row + i) * args.v_row_stride + value_offset;
  }
  float* out(int64_t i) const {
    return args.out + (first_row + i) * args.heads * args.value_dim + value_offset;
  }
  float* state_in(int64_t slot, int64_t head) const {
    return args.states + (slot * args.heads + head) * args.key_dim * args.value_dim;
  }
  // What is left of a state after `steps` positions.
  float decay(int64_t steps) const { return std::exp(log_decay * static_cast<float>(steps)); }

  const LinearAttentionArgs& args;
  int64_t key_offset, value_offset, first_row;
  float log_decay;
  float* state;  // [key_dim, value_dim]
};

void multiply(float factor, float* y, int64_t count) {
  for (int64_t c = 0; c < count; ++c) y[c] *= factor;
}

void add_multiple(float factor, const float* x, float* y, int64_t count) {
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

// out = q_i S
void read_state(const Head& h, int64_t i) {
  const LinearAttentionArgs& a = h.args;
  float* out = h.out(i);
  std::fill_n(out, a.value_dim, 0.0f);
  for (int64_t c = 0; c < a.key_dim; ++c) {
    add_multiple(h.q(i)[c], h.state + c * a.value_dim, out, a.value_dim);
  }
}

// S = S + factor k_i^T v_i
void add_to_state(const Head& h, int64_t i, float factor) {
  const LinearAttentionArgs& a = h.args;
  for (int64_t c = 0; c < a.key_dim; ++c) {
    add_multiple(factor * h.k(i)[c], h.v(i), h.state + c * a.value_dim, a.value_dim);
  }
}

// Rows [first, first + n), a chunk or the part of one that the prompt has, where d = exp(log_decay)
// and i and j count from the chunk's first row:
//   o_i = scale (d^(i+1) q_i S + sum_{j <= i} d^(i-j) (q_i . k_j) v_j)
//   S   = d^n S + sum_j d^(n-1-j) k_j^T v_j
void prefill_form(const Head& h, int64_t first, int64_t n) {
  const LinearAttentionArgs& a = h.args;
  for (int64_t i = 0; i < n; ++i) {
    const float* q = h.q(first + i);
    float* out = h.out(first + i);
    read_state(h, first + i);
    multiply(h.decay(i + 1), out, a.value_dim);
    for (int64_t j = 0; j <= i; ++j) {
      float score = 0;
      for (int64_t c = 0; c < a.key_dim; ++c) score += q[c] * h.k(first + j)[c];
      add_multiple(h.decay(i - j) * score, h.v(first + j), out, a.value_dim);
    }
    multiply(a.scale, out, a.value_dim);
  }
  multiply(h.decay(n), h.state, a.key_dim * a.value_dim);
  for (int64_t j = 0; j < n; ++j) add_to_state(h, first + j, h.decay(n - 1 - j));
}

void decode_form(const Head& h, int64_t i) {
  const LinearAttentionArgs& a = h.args;
  multiply(h.decay(1), h.state, a.key_dim * a.value_dim);
  add_to_state(h, i, 1);
  read_state(h, i);
  multiply(a.scale, h.out(i), a.value_dim);
}

void capture(const Head& h, int64_t s, int64_t head, int64_t position) {
  const LinearAttentionArgs& a = h.args;
  for (const Capture* c = a.captures; c < a.captures + a.capture_count; ++c) {
    if (c->span != s || c->position != position) continue;
    std::copy_n(h.state, a.key_dim * a.value_dim, h.state_in(c->slot, head));
  }
}

void run_span(const LinearAttentionArgs& a, int64_t s, int64_t head) {
  const SpanArgs& span = a.spans[s];
  Head h(a, s, head);
  if (span.first_position == 0) std::fill_n(h.state, a.key_dim * a.value_dim, 0.0f);
  int64_t prompt_rows =
      std::clamp<int64_t>(a.prompt_tokens[s] - span.first_position, 0, span.row_count);
  int64_t i = 0;
  while (i < prompt_rows) {
    int64_t n = std::min(a.chunk, prompt_rows - i);
    prefill_form(h, i, n);
    i += n;
    capture(h, s, head, span.first_position + i - 1);
  }
  for (; i < span.row_count; ++i) decode_form(h, i);
}

}  // namespace

// Katharopoulos et al. 2020, "Transformers are RNNs", section 3.4, without the normaliser; Sun et
// al. 2023, "Retentive Network", section 2.1, for the decay in both forms; Qin et al. 2024,
// "Lightning Attention-2", for one constant decay per head.
void linear_attention(const LinearAttentionArgs& a) {
  parallel_interleaved(a.launch, [&](int64_t first, int64_t step) {
    for (int64_t item = first; item < a.span_count * a.heads; item += step) {
      run_span(a, item / a.heads, item % a.heads);
    }
  });
}

}  // namespace banyan::portable
