// Layers with a fixed-size state in a slot.
#include <algorithm>
#include <cmath>

#include "kernels/portable/portable.h"
#include "kernels/portable/update.h"

namespace banyan::portable {
namespace {

void multiply(float factor, float* y, int64_t count) {
  for (int64_t c = 0; c < count; ++c) y[c] *= factor;
}

void add_multiple(float factor, const float* x, float* y, int64_t count) {
  for (int64_t c = 0; c < count; ++c) y[c] += factor * x[c];
}

struct LinearHead : SlotHead<Portable, LinearAttentionArgs> {
  using SlotHead::SlotHead;

  // The decay of a state over `steps` positions.
  float decay(int64_t steps) const { return std::exp(args.log_decay[head] * steps); }

  // out = q_i S
  void read_state(int64_t i) const {
    std::fill_n(out(i), args.value_dim, 0.0f);
    for (int64_t c = 0; c < args.key_dim; ++c) {
      add_multiple(q(i)[c], state + c * args.value_dim, out(i), args.value_dim);
    }
  }

  // S = S + factor k_i^T v_i
  void add_to_state(int64_t i, float factor) const {
    for (int64_t c = 0; c < args.key_dim; ++c) {
      add_multiple(factor * k(i)[c], v(i), state + c * args.value_dim, args.value_dim);
    }
  }

  // Rows [first, first + n), a chunk or its part within the prompt, where d = exp(log_decay) and i
  // and j are relative to the chunk's first row:
  //   o_i = scale (d^(i+1) q_i S + sum_{j <= i} d^(i-j) (q_i . k_j) v_j)
  //   S   = d^n S + sum_j d^(n-1-j) k_j^T v_j
  void prefill_form(int64_t first, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      read_state(first + i);
      multiply(decay(i + 1), out(first + i), args.value_dim);
      for (int64_t j = 0; j <= i; ++j) {
        float score = 0;
        for (int64_t c = 0; c < args.key_dim; ++c) score += q(first + i)[c] * k(first + j)[c];
        add_multiple(decay(i - j) * score, v(first + j), out(first + i), args.value_dim);
      }
      multiply(args.scale, out(first + i), args.value_dim);
    }
    multiply(decay(n), state, state_size());
    for (int64_t j = 0; j < n; ++j) add_to_state(first + j, decay(n - 1 - j));
  }

  int64_t decays() const { return 0; }

  void replay(const Update& u) const {
    float factor = decay(1);
    decay_state(*this, &factor, 1);
    add_update(*this, u);
  }

  void decode_form(int64_t i, const Update& u) const {
    std::copy_n(k(i), args.key_dim, u.key);
    std::copy_n(v(i), args.value_dim, u.value);
    replay(u);
    read_state(i);
    multiply(args.scale, out(i), args.value_dim);
  }
};

}  // namespace

// Katharopoulos et al. 2020, "Transformers are RNNs", section 3.4, without the normaliser; Sun et
// al. 2023, "Retentive Network", section 2.1, for the decay in both forms; Qin et al. 2024,
// "Lightning Attention-2", for one constant decay per head.
void linear_attention(const LinearAttentionArgs& a) {
  run_heads<LinearHead>(a);
}

// The depthwise convolution in front of linear attention: Gu and Dao 2023, "Mamba", section 3.4.
void short_conv(const ShortConvArgs& a) {
  int64_t past = a.taps - 1;
  for (int64_t s = 0; s < a.spans.count; ++s) {
    const SpanArgs& span = a.spans.spans[s];
    float* state = a.states + a.spans.slots[s] * past * a.channels;
    if (span.first_position == 0) std::fill_n(state, past * a.channels, 0.0f);
    // Row i of the span; if negative, one of the log or, before these, of the state.
    SpanLog<Portable> log(a.spans, s, a.channels);
    auto [drafts, replayed, held] = log.rows;
    int64_t logged = replayed + held, known = span.row_count - drafts;
    auto input = [&](int64_t i) -> const float* {
      if (i >= 0) return a.x + (span.row_begin + i) * a.x_row_stride;
      return i >= -logged ? log.row(logged + i) : state + (past + logged + i) * a.channels;
    };
    // The inputs before row i. Works in place on the state, since each input moves from a later row
    // to an earlier one.
    auto save = [&](int64_t i, float* to) {
      for (int64_t j = 0; j < past; ++j) {
        std::copy_n(input(i - past + j), a.channels, to + j * a.channels);
      }
    };
    for (int64_t i = 0; i < span.row_count; ++i) {
      float* y = a.y + (span.row_begin + i) * a.channels;
      for (int64_t c = 0; c < a.channels; ++c) {
        float sum = a.bias != nullptr ? a.bias[c] : 0;
        for (int64_t j = 0; j < a.taps; ++j) {
          sum += a.weight[j * a.channels + c] * input(i - past + j)[c];
        }
        y[c] = a.silu ? sum / (1.0f + std::exp(-sum)) : sum;
      }
    }
    for (int64_t i = -replayed; i < known; ++i) {
      for_captures(a.spans, s, span.first_position + i,
                   [&](int64_t slot) { save(i + 1, a.states + slot * past * a.channels); });
    }
    save(known - held, state);
    for (int64_t j = 0; j < drafts; ++j) {
      std::copy_n(input(known + j), a.channels, log.row(held + j));
    }
  }
}

}  // namespace banyan::portable
