// Selective state spaces (Mamba 2) and their gates.
#include <algorithm>
#include <cmath>

#include "kernels/portable/portable.h"
#include "kernels/portable/update.h"

namespace banyan::portable {
namespace {

struct StateSpaceHead : SlotHead<Portable, StateSpaceArgs> {
  using SlotHead::SlotHead;

  float decay(int64_t i) const { return args.decay[(first_row + i) * args.heads + head]; }
  float step(int64_t i) const { return args.step[(first_row + i) * args.heads + head]; }

  // y = y + factor x
  void add_multiple(float factor, const float* x, float* y) const {
    for (int64_t d = 0; d < args.value_dim; ++d) y[d] += factor * x[d];
  }

  // out_i = factor q_i S + skip v_i
  void read_state(int64_t i, float factor) const {
    std::fill_n(out(i), args.value_dim, 0.0f);
    for (int64_t c = 0; c < args.key_dim; ++c) {
      add_multiple(factor * q(i)[c], state + c * args.value_dim, out(i));
    }
    add_multiple(args.skip[head], v(i), out(i));
  }

  // S = S + factor k_i^T v_i
  void add_to_state(int64_t i, float factor) const {
    for (int64_t c = 0; c < args.key_dim; ++c) {
      add_multiple(factor * k(i)[c], v(i), state + c * args.value_dim);
    }
  }

  // Rows [first, first + n), a chunk or its part within the prompt. With d(i, j) the product of the
  // decays of rows j + 1 to i, S the state before the chunk, and i and j relative to its first row:
  //   o_i = d(i, -1) q_i S + sum_{j <= i} d(i, j) step_j (q_i . k_j) v_j + skip v_i
  //   S   = d(n - 1, -1) S + sum_j d(n - 1, j) step_j k_j^T v_j
  void prefill_form(int64_t first, int64_t n) const {
    float total = 1;
    for (int64_t i = 0; i < n; ++i) {
      total *= decay(first + i);
      read_state(first + i, total);
      float kept = 1;
      for (int64_t j = i; j >= 0; --j) {
        float score = 0;
        for (int64_t c = 0; c < args.key_dim; ++c) score += q(first + i)[c] * k(first + j)[c];
        add_multiple(kept * step(first + j) * score, v(first + j), out(first + i));
        kept *= decay(first + j);
      }
    }
    for (int64_t s = 0; s < state_size(); ++s) state[s] *= total;
    float kept = 1;
    for (int64_t j = n - 1; j >= 0; --j) {
      add_to_state(first + j, kept * step(first + j));
      kept *= decay(first + j);
    }
  }

  int64_t decays() const { return 1; }

  void replay(const Update& u) const {
    decay_state(*this, u.decay, 1);
    add_update(*this, u);
  }

  void decode_form(int64_t i, const Update& u) const {
    u.decay[0] = decay(i);
    for (int64_t c = 0; c < args.key_dim; ++c) u.key[c] = step(i) * k(i)[c];
    std::copy_n(v(i), args.value_dim, u.value);
    replay(u);
    read_state(i, 1);
  }
};

}  // namespace

// Dao and Gu 2024, "Transformers are SSMs", arXiv:2405.21060, section 6 for the chunked form.
void state_space(const StateSpaceArgs& a) {
  run_heads<StateSpaceHead>(a);
}

void state_space_gates(const StateSpaceGatesArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * a.heads; i < end * a.heads; ++i) {
      int64_t r = i / a.heads, h = i % a.heads;
      float z = a.step_logits[r * a.logits_row_stride + h] + a.bias[h];
      float softplus = z > 20 ? z : std::log1p(std::exp(z));
      a.step[i] = std::min(std::max(softplus, a.step_min), a.step_max);
      a.decay[i] = std::exp(-std::exp(a.log_rate[h]) * a.step[i]);
    }
  });
}

}  // namespace banyan::portable
