// The delta rule with one decay per channel or per head, and its gates (the definitions, with the
// equations, are in kernels/portable/delta.cpp). Threads share the columns of values, or the
// channels of keys; a column's sums are those of the portable kernel, in its order.
#pragma once

#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/slots.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

struct DeltaAttention {
  DeltaAttentionArgs a;
  using Head = HeadOf<DeltaAttentionArgs>;

  // Of a chunk, in the block's scratch.
  struct Chunk {
    float* keys;             // [n, key_dim] d(i, j) k_j
    float* updates;          // [n, value_dim] u_j
    float* total;            // [key_dim] d(i, -1)
    float *k_dots, *q_dots;  // [n] k_i . keys_j, q_i . keys_j
  };
  int64_t chunk_floats() const { return a.chunk * (a.key_dim + a.value_dim + 2) + a.key_dim; }
  Shape shape() const { return slot_shape(a, 0, chunk_floats() * sizeof(float)); }
  BANYAN_DEVICE Chunk chunk_in(std::byte* scratch) const {
    auto* keys = reinterpret_cast<float*>(scratch);
    float* updates = keys + a.chunk * a.key_dim;
    float* total = updates + a.chunk * a.value_dim;
    float* k_dots = total + a.key_dim;
    return {keys, updates, total, k_dots, k_dots + a.chunk};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    run_all_heads(block, *this);
  }

  static constexpr bool kCorrects = true;
  BANYAN_DEVICE int64_t decays() const { return a.decay_dim; }
  BANYAN_DEVICE float decay_at(const Head& head, int64_t i, int64_t c) const {
    const float* decays = a.decay + ((head.first_row + i) * a.heads + head.head) * a.decay_dim;
    return decays[a.decay_dim == 1 ? 0 : c];
  }
  BANYAN_DEVICE float beta(const Head& head, int64_t i) const {
    return a.beta[(head.first_row + i) * a.heads + head.head];
  }
  BANYAN_DEVICE float key_factor(const Head& head, int64_t i) const { return beta(head, i); }
  BANYAN_DEVICE float query_factor() const { return a.scale; }
  BANYAN_DEVICE float output(const Head&, int64_t, int64_t, float sum) const { return sum; }

  // Brings the keys and their total decay to row i of the chunk, the row `row` of the span.
  template <class Block>
  BANYAN_DEVICE void decay_keys(Block& block, const Head& head, const Chunk& chunk, int64_t row,
                                int64_t i) const {
    for_each(block, a.key_dim, [&](int64_t c) {
      float e = decay_at(head, row, c);
      chunk.total[c] = i == 0 ? e : chunk.total[c] * e;
      for (int64_t j = 0; j < i; ++j) chunk.keys[j * a.key_dim + c] *= e;
      chunk.keys[i * a.key_dim + c] = head.k(row)[c];
    });
    for_each(block, i + 1, [&](int64_t j) {
      chunk.k_dots[j] = dot(head.k(row), chunk.keys + j * a.key_dim, a.key_dim);
      chunk.q_dots[j] = dot(head.q(row), chunk.keys + j * a.key_dim, a.key_dim);
    });
  }

  // Column d of (total x) S times factor, added to y.
  BANYAN_DEVICE float add_read(float y, float factor, const float* total, const float* x,
                               const float* state, int64_t d) const {
    for (int64_t c = 0; c < a.key_dim; ++c) {
      y += factor * (total[c] * x[c]) * state[c * a.value_dim + d];
    }
    return y;
  }

  template <class Block>
  BANYAN_DEVICE void prefill_form(Block& block, const Head& head, int64_t first, int64_t n) const {
    Chunk chunk = chunk_in(block.scratch());
    for (int64_t i = 0; i < n; ++i) {
      int64_t row = first + i;
      decay_keys(block, head, chunk, row, i);
      for_each(block, a.value_dim, [&](int64_t d) {
        float u = add_read(head.v(row)[d], -1, chunk.total, head.k(row), head.state, d);
        for (int64_t j = 0; j < i; ++j) {
          u += -chunk.k_dots[j] * chunk.updates[j * a.value_dim + d];
        }
        chunk.updates[i * a.value_dim + d] = u * beta(head, row);
        float out = add_read(0, a.scale, chunk.total, head.q(row), head.state, d);
        for (int64_t j = 0; j <= i; ++j) {
          out += a.scale * chunk.q_dots[j] * chunk.updates[j * a.value_dim + d];
        }
        head.out(row)[d] = out;
      });
    }
    for_each(block, head.state_size(), [&](int64_t item) {
      int64_t c = quotient(item, a.value_dim), d = item - c * a.value_dim;
      float s = head.state[item] * chunk.total[c];
      for (int64_t j = 0; j < n; ++j) {
        s += chunk.keys[j * a.key_dim + c] * chunk.updates[j * a.value_dim + d];
      }
      head.state[item] = s;
    });
  }
};

struct DeltaGates {
  DeltaGatesArgs a;

  std::array<MemoryRange, 4> reads() const {
    int64_t width = a.heads * a.key_dim;
    return {float_rows(a.decay_logits, a.rows, a.decay_row_stride, width),
            float_rows(a.beta_logits, a.rows, a.beta_row_stride, a.heads),
            floats(a.log_rate, a.heads), floats(a.bias, width)};
  }
  std::array<MemoryRange, 2> writes() const {
    return {floats(a.decay, a.rows * a.heads * a.key_dim), floats(a.beta, a.rows * a.heads)};
  }
  Shape shape() const { return {.blocks = blocks_for(a.rows * a.heads * a.key_dim)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.rows * a.heads * a.key_dim, [&](int64_t item) {
      int64_t i = quotient(item, a.key_dim), c = item - i * a.key_dim;
      int64_t r = quotient(i, a.heads), h = i - r * a.heads;
      float rate = exp(a.log_rate[h]);
      float z = a.decay_logits[r * a.decay_row_stride + h * a.key_dim + c];
      z += a.bias[h * a.key_dim + c];
      a.decay[item] =
          exp(a.lower_bound < 0 ? a.lower_bound * sigmoid(rate * z) : -rate * softplus(z));
      if (c == 0) a.beta[i] = sigmoid(a.beta_logits[r * a.beta_row_stride + h]);
    });
  }
};

}  // namespace banyan::cuda
