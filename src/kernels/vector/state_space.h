// Selective state spaces (Mamba 2) and their gates. Formulas are cited in portable/state_space.cpp.
//
// A block of the prefill form reads the state once for all queries, adds the block's values by
// scores between its rows, and updates the state once.
#pragma once

#include "kernels/vector/delta.h"

namespace banyan::simd {

template <class V>
struct StateSpaceHead : SlotHead<V, StateSpaceArgs> {
  using SlotHead<V, StateSpaceArgs>::SlotHead;

  float decay(int64_t i) const {
    return this->args.decay[(this->first_row + i) * this->args.heads + this->head];
  }
  float step(int64_t i) const {
    return this->args.step[(this->first_row + i) * this->args.heads + this->head];
  }
  float skip() const { return this->args.skip[this->head]; }

  void prefill_form(int64_t first, int64_t n) { for_blocks(*this, first, n); }

  void run_block(int64_t first, int64_t n) {
    const StateSpaceArgs& a = this->args;
    float left[kBlock], factors[kBlock][kBlock], scores[kBlock][kBlock];
    alignas(64) float keys[kBlock * kHeadDimMax];
    for (int64_t i = 0; i < n; ++i) {
      left[i] = i == 0 ? decay(first) : left[i - 1] * decay(first + i);
      for (int64_t j = 0; j < i; ++j) factors[i][j] = factors[i - 1][j] * decay(first + i);
      factors[i][i] = step(first + i);
    }
    for_scores<V>(*this, first, n, [&](int64_t i, int64_t j, float product) {
      scores[i][j] = factors[i][j] * product;
    });
    read_state<V>(*this, first, n);
    add_values<V>(*this, first, n, left, scores,
                  [&](auto& out, const auto& value) { out.add(skip(), value); });
    for (int64_t j = 0; j < n; ++j) {
      scale<V>(factors[n - 1][j], this->k(first + j), keys + j * a.key_dim, a.key_dim);
    }
    update_state<V>(*this, first, n, keys, left[n - 1]);
  }

  int64_t decays() const { return 1; }

  StateRow<V> row_of(const Update& u) const {
    StateRow<V> row(*this, u);
    row.decay_alike(*u.decay);
    return row;
  }

  void replay(const Update& u) { replay_row<V>(row_of(u), u.value); }

  void decode_form(int64_t i, const Update& u) {
    *u.decay = decay(i);
    for (int64_t c = 0; c < this->args.key_dim; ++c) u.key[c] = step(i) * this->k(i)[c];
    StateRow<V> row = row_of(u);
    for_panels<V>(row.value_dim, [&]<int N>(int64_t column, int64_t lanes) {
      auto value = Panel<V, N>::load(this->v(i) + column, lanes);
      value.store(u.value + column, lanes);
      auto out = decode_panel<V, N>(row, column, lanes, value, this->q(i), 1);
      out.add(skip(), value);
      out.store(this->out(i) + column, lanes);
    });
  }
};

template <class V>
void state_space(const StateSpaceArgs& a) {
  if (a.key_dim > kHeadDimMax) return portable::state_space(a);
  run_heads<StateSpaceHead<V>>(a);
}

template <class V>
void state_space_gates(const StateSpaceGatesArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.heads), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t h = 0; h < a.heads; h += V::kLanes) {
        int64_t n = a.heads - h;
        auto logits = load_up_to<V>(a.step_logits + r * a.logits_row_stride + h, n);
        auto step = softplus<V>(V::add(logits, load_up_to<V>(a.bias + h, n)));
        step = V::min(V::set(a.step_max), V::max(V::set(a.step_min), step));
        auto rate = exp<V>(load_up_to<V>(a.log_rate + h, n));
        store_up_to<V>(a.step + r * a.heads + h, n, step);
        store_up_to<V>(a.decay + r * a.heads + h, n, exp<V>(V::mul(V::sub(V::set(0), rate), step)));
      }
    }
  });
}

}  // namespace banyan::simd
