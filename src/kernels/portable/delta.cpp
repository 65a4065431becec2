// The delta rule with one decay per channel or per head, and its gates.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/portable/portable.h"
#include "kernels/portable/update.h"

namespace banyan::portable {
namespace {

struct DeltaHead : SlotHead<Portable, DeltaAttentionArgs> {
  using SlotHead::SlotHead;

  float decay(int64_t i, int64_t c) const {
    const float* of_row = args.decay + ((first_row + i) * args.heads + head) * args.decay_dim;
    return of_row[args.decay_dim == 1 ? 0 : c];
  }
  float beta(int64_t i) const { return args.beta[(first_row + i) * args.heads + head]; }

  float dot(const float* x, const float* y) const {
    float sum = 0;
    for (int64_t c = 0; c < args.key_dim; ++c) sum += x[c] * y[c];
    return sum;
  }

  // y = y + factor x S
  void add_read(float factor, const float* x, float* y) const {
    for (int64_t c = 0; c < args.key_dim; ++c) {
      add_multiple(factor * x[c], state + c * args.value_dim, y);
    }
  }

  // y = y + factor x
  void add_multiple(float factor, const float* x, float* y) const {
    for (int64_t d = 0; d < args.value_dim; ++d) y[d] += factor * x[d];
  }

  // Rows [first, first + n), a chunk or its part within the prompt. With d(i, j) the product of the
  // decays of rows j + 1 to i, S the state before the chunk, and i and j relative to its first row:
  //   u_i = beta_i (v_i - (d(i, -1) k_i) S - sum_{j < i} (k_i . d(i, j) k_j) u_j)
  //   o_i = scale ((d(i, -1) q_i) S + sum_{j <= i} (q_i . d(i, j) k_j) u_j)
  //   S   = d(n - 1, -1) S + sum_j (d(n - 1, j) k_j)^T u_j
  // A product of decays can only underflow; a quotient of two products, or a difference of sums of
  // logarithms, would overflow or cancel.
  void prefill_form(int64_t first, int64_t n) const {
    int64_t key_dim = args.key_dim, value_dim = args.value_dim;
    std::vector<float> keys(n * key_dim);     // d(i, j) k_j
    std::vector<float> total(key_dim, 1.0f);  // d(i, -1)
    std::vector<float> updates(n * value_dim), row(key_dim);
    auto decayed = [&](const float* x) {
      for (int64_t c = 0; c < key_dim; ++c) row[c] = total[c] * x[c];
      return row.data();
    };
    for (int64_t i = 0; i < n; ++i) {
      const float *q = this->q(first + i), *k = this->k(first + i);
      float *u = updates.data() + i * value_dim, *out = this->out(first + i);
      for (int64_t c = 0; c < key_dim; ++c) {
        float e = decay(first + i, c);
        total[c] *= e;
        for (int64_t j = 0; j < i; ++j) keys[j * key_dim + c] *= e;
        keys[i * key_dim + c] = k[c];
      }
      std::copy_n(v(first + i), value_dim, u);
      add_read(-1, decayed(k), u);
      for (int64_t j = 0; j < i; ++j) {
        add_multiple(-dot(k, &keys[j * key_dim]), &updates[j * value_dim], u);
      }
      for (int64_t d = 0; d < value_dim; ++d) u[d] *= beta(first + i);
      std::fill_n(out, value_dim, 0.0f);
      add_read(args.scale, decayed(q), out);
      for (int64_t j = 0; j <= i; ++j) {
        add_multiple(args.scale * dot(q, &keys[j * key_dim]), &updates[j * value_dim], out);
      }
    }
    for (int64_t c = 0; c < key_dim; ++c) {
      float* s = state + c * value_dim;
      for (int64_t d = 0; d < value_dim; ++d) s[d] *= total[c];
      for (int64_t j = 0; j < n; ++j)
        add_multiple(keys[j * key_dim + c], &updates[j * value_dim], s);
    }
  }

  int64_t decays() const { return args.decay_dim; }

  void replay(const Update& u) const {
    decay_state(*this, u.decay, args.decay_dim);
    add_update(*this, u);
  }

  void decode_form(int64_t i, const Update& u) const {
    for (int64_t c = 0; c < args.decay_dim; ++c) u.decay[c] = decay(i, c);
    for (int64_t c = 0; c < args.key_dim; ++c) u.key[c] = beta(i) * k(i)[c];
    decay_state(*this, u.decay, args.decay_dim);
    std::copy_n(v(i), args.value_dim, u.value);
    add_read(-1, k(i), u.value);
    add_update(*this, u);
    std::fill_n(out(i), args.value_dim, 0.0f);
    add_read(args.scale, q(i), out(i));
  }
};

// log(1 + exp(z)), which equals z once exp(z) dominates the 1.
float softplus(float z) {
  return z > 20 ? z : std::log1p(std::exp(z));
}

float sigmoid(float z) {
  return 1.0f / (1.0f + std::exp(-z));
}

}  // namespace

// Kimi Team 2025, "Kimi Linear", arXiv:2510.26692, section 3: equation 1, and the chunked form of
// section 3.1 with the triangular system solved row by row. With a decay per head: Yang et al.
// 2024, "Gated Delta Networks", arXiv:2412.06464, equation 10.
void delta_attention(const DeltaAttentionArgs& a) {
  run_heads<DeltaHead>(a);
}

// Softplus decay: Dao and Gu 2024, "Transformers are SSMs"; bounded decay: flash-linear-attention's
// KDA ("safe gate").
void delta_gates(const DeltaGatesArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * a.heads; i < end * a.heads; ++i) {
      int64_t r = i / a.heads, h = i % a.heads;
      float rate = std::exp(a.log_rate[h]);
      for (int64_t c = 0; c < a.key_dim; ++c) {
        float z = a.decay_logits[r * a.decay_row_stride + h * a.key_dim + c];
        z += a.bias[h * a.key_dim + c];
        float log_decay =
            a.lower_bound < 0 ? a.lower_bound * sigmoid(rate * z) : -rate * softplus(z);
        a.decay[i * a.key_dim + c] = std::exp(log_decay);
      }
      a.beta[i] = sigmoid(a.beta_logits[r * a.beta_row_stride + h]);
    }
  });
}

}  // namespace banyan::portable
