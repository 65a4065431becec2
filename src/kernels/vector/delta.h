// The delta rule with one decay per channel or per head, and its gates. Formulas are cited in
// portable/delta.cpp.
//
// A block of the prefill form takes five steps: cumulative decays, scores between rows, one read of
// the state for all keys and queries, the triangular system, and one update of the state. Steps
// one, two and four take a fifth of the time at 128 x 128. With one decay per head, scores are
// plain products times a factor per pair of rows.
#pragma once

#include "kernels/vector/recurrent.h"

namespace banyan::simd {

// Scratch of one block. Rows of keys and queries are padded with zeros from key_dim to `stride`, a
// multiple of the vector width.
struct DeltaBlock {
  alignas(64) float reads[2 * kBlock * kHeadDimMax];  // d(i, -1) k_i of all rows, then d(i, -1) q_i
  alignas(64) float keys[kBlock * kHeadDimMax];       // d(i, j) k_j for the current row i
  alignas(64) float kept[kHeadDimMax];                // d(n - 1, -1)
  alignas(64) float read[2 * kBlock * kHeadDimMax];   // reads S, [2 n, value_dim]
  alignas(64) float updates[kBlock * kHeadDimMax];    // u, [n, value_dim]
  float corrections[kBlock][kBlock];                  // -beta_i k_i . d(i, j) k_j for j < i
  float scores[kBlock][kBlock];                       // q_i . d(i, j) k_j for j <= i
  int64_t stride;
};

template <class V>
struct DeltaHead : SlotHead<V, DeltaAttentionArgs> {
  using SlotHead<V, DeltaAttentionArgs>::SlotHead;

  const float* decay(int64_t i) const {
    return this->args.decay + ((this->first_row + i) * this->args.heads + this->head) * decay_dim();
  }
  int64_t decay_dim() const { return this->args.decay_dim; }
  bool decays_alike() const { return decay_dim() == 1; }
  float beta(int64_t i) const {
    return this->args.beta[(this->first_row + i) * this->args.heads + this->head];
  }
  int64_t key_dim() const { return this->args.key_dim; }
  int64_t value_dim() const { return this->args.value_dim; }

  void prefill_form(int64_t first, int64_t n) { for_blocks(*this, first, n); }

  void decay_rows(int64_t first, int64_t n, DeltaBlock& block) const {
    for (int64_t c = 0; c < key_dim(); c += V::kLanes) {
      int64_t lanes = key_dim() - c;
      auto product = V::set(1);
      for (int64_t i = 0; i < n; ++i) {
        const float* e = decay(first + i);
        product = V::mul(product, decays_alike() ? V::set(*e) : load_up_to<V>(e + c, lanes));
        auto k = load_up_to<V>(this->k(first + i) + c, lanes);
        auto q = load_up_to<V>(this->q(first + i) + c, lanes);
        V::store(block.reads + i * block.stride + c, V::mul(product, k));
        V::store(block.reads + (n + i) * block.stride + c, V::mul(product, q));
      }
      V::store(block.kept + c, product);
    }
  }

  // Decays B keys, starting at j, to row i, and computes their products with its key and query.
  template <int B>
  void score_keys(int64_t first, int64_t i, int64_t j, DeltaBlock& block) const {
    typename V::F with_key[kTileOutputs], with_query[kTileOutputs];
#pragma GCC unroll 4
    for (int b = 0; b < kTileOutputs; ++b) with_key[b] = with_query[b] = V::set(0);
    const float *k = this->k(first + i), *q = this->q(first + i), *e = decay(first + i);
    for (int64_t c = 0; c < key_dim(); c += V::kLanes) {
      auto row_k = load_up_to<V>(k + c, key_dim() - c);
      auto row_q = load_up_to<V>(q + c, key_dim() - c);
      auto row_e = load_up_to<V>(e + c, key_dim() - c);
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) {
        float* at = block.keys + (j + b) * block.stride + c;
        auto key = V::mul(V::load(at), row_e);
        V::store(at, key);
        with_key[b] = V::fma(row_k, key, with_key[b]);
        with_query[b] = V::fma(row_q, key, with_query[b]);
      }
    }
    float key_sums[kTileOutputs], query_sums[kTileOutputs];
    V::sum4(with_key[0], with_key[1], with_key[2], with_key[3], key_sums);
    V::sum4(with_query[0], with_query[1], with_query[2], with_query[3], query_sums);
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      block.corrections[i][j + b] = -beta(first + i) * key_sums[b];
      block.scores[i][j + b] = query_sums[b];
    }
  }

  // Adds the key of row i, and its product with the row's query.
  void score_own_key(int64_t first, int64_t i, DeltaBlock& block) const {
    auto sum = V::set(0);
    for (int64_t c = 0; c < key_dim(); c += V::kLanes) {
      auto k = load_up_to<V>(this->k(first + i) + c, key_dim() - c);
      sum = V::fma(load_up_to<V>(this->q(first + i) + c, key_dim() - c), k, sum);
      V::store(block.keys + i * block.stride + c, k);
    }
    block.scores[i][i] = V::sum(sum);
  }

  // The same with one decay for all channels.
  void score_alike(int64_t first, int64_t n, DeltaBlock& block) const {
    float kept[kBlock][kBlock];  // d(i, j)
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) kept[i][j] = *decay(first + i) * kept[i - 1][j];
      kept[i][i] = 1;
    }
    for_scores<V>(*this, first, n, [&](int64_t i, int64_t j, float product) {
      block.scores[i][j] = kept[i][j] * product;
    });
    for (int64_t i = 1; i < n; ++i) {
      const float* key[] = {this->k(first + i)};
      for (int64_t j = 0; j < i; j += kTileOutputs) {
        const float* keys[kTileOutputs];
        float sums[1][kTileOutputs];
        for (int64_t b = 0; b < kTileOutputs; ++b)
          keys[b] = this->k(first + (j + b < n ? j + b : j));
        dot_tile<V, 1>(key, keys, key_dim(), sums);
        for (int64_t b = 0; b < kTileOutputs && j + b < i; ++b) {
          block.corrections[i][j + b] = -beta(first + i) * kept[i][j + b] * sums[0][b];
        }
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      scale<V>(kept[n - 1][j], this->k(first + j), block.keys + j * block.stride, key_dim());
    }
  }

  void score(int64_t first, int64_t n, DeltaBlock& block) const {
    if (decays_alike()) return score_alike(first, n, block);
    for (int64_t i = 0; i < n; ++i) {
      int64_t j = 0;
      for (; j + 4 <= i; j += 4) score_keys<4>(first, i, j, block);
      if (i - j == 3) score_keys<3>(first, i, j, block);
      if (i - j == 2) score_keys<2>(first, i, j, block);
      if (i - j == 1) score_keys<1>(first, i, j, block);
      score_own_key(first, i, block);
    }
  }

  // Computes u and the outputs of a panel of columns, row by row.
  template <int N>
  void solve(int64_t first, int64_t n, int64_t column, int64_t lanes, DeltaBlock& block) const {
    using Columns = Panel<V, N>;
    float* updates = block.updates + column;
    for (int64_t i = 0; i < n; ++i) {
      auto update = Columns::load(this->v(first + i) + column, lanes);
      update.add(-1, Columns::load(block.read + i * value_dim() + column, lanes));
      update.scale(beta(first + i));
      auto out = Columns::load(block.read + (n + i) * value_dim() + column, lanes);
      for (int64_t j = 0; j < i; ++j) {
        auto earlier = Columns::load(updates + j * value_dim(), lanes);
        update.add(block.corrections[i][j], earlier);
        out.add(block.scores[i][j], earlier);
      }
      out.add(block.scores[i][i], update);
      out.scale(this->args.scale);
      update.store(updates + i * value_dim(), lanes);
      out.store(this->out(first + i) + column, lanes);
    }
  }

  void run_block(int64_t first, int64_t n) {
    DeltaBlock block;
    block.stride = (key_dim() + V::kLanes - 1) / V::kLanes * V::kLanes;
    decay_rows(first, n, block);
    score(first, n, block);
    multiply<V>({.a = block.reads,
                 .a_row_stride = block.stride,
                 .a_column_stride = 1,
                 .b = this->state,
                 .b_row_stride = value_dim(),
                 .c = block.read,
                 .c_row_stride = value_dim(),
                 .kept = nullptr,
                 .rows = 2 * n,
                 .depth = key_dim(),
                 .columns = value_dim()});
    for_panels<V>(value_dim(), [&]<int N>(int64_t column, int64_t lanes) {
      solve<N>(first, n, column, lanes, block);
    });
    multiply<V>({.a = block.keys,
                 .a_row_stride = 1,
                 .a_column_stride = block.stride,
                 .b = block.updates,
                 .b_row_stride = value_dim(),
                 .c = this->state,
                 .c_row_stride = value_dim(),
                 .kept = block.kept,
                 .rows = key_dim(),
                 .depth = n,
                 .columns = value_dim()});
  }

  int64_t decays() const { return decay_dim(); }

  StateRow<V> row_of(const Update& u) const {
    StateRow<V> row(*this, u);
    if (decays_alike()) {
      row.decay_alike(*u.decay);
    } else {
      copy_floats(u.decay, key_dim(), row.decay);
    }
    return row;
  }

  void replay(const Update& u) { replay_row<V>(row_of(u), u.value); }

  void decode_form(int64_t i, const Update& u) {
    copy_floats(decay(i), decay_dim(), u.decay);
    copy_floats(this->k(i), key_dim(), u.key);
    StateRow<V> row = row_of(u);
    float decayed_key[kHeadDimMax];
    for (int64_t c = 0; c < key_dim(); ++c) decayed_key[c] = row.decay[c] * row.key[c];
    for_panels<V>(value_dim(), [&]<int N>(int64_t column, int64_t lanes) {
      auto read = Panel<V, N>::zero();
      for (int64_t c = 0; c < key_dim(); ++c) {
        const float* at = row.from + c * value_dim() + column;
        read.add(decayed_key[c], Panel<V, N>::load(at, lanes));
      }
      auto value = Panel<V, N>::load(this->v(i) + column, lanes);
      value.add(-1, read);
      value.scale(beta(i));
      value.store(u.value + column, lanes);
      auto out = decode_panel<V, N>(row, column, lanes, value, this->q(i), this->args.scale);
      out.store(this->out(i) + column, lanes);
    });
  }
};

template <class V>
void delta_attention(const DeltaAttentionArgs& a) {
  if (a.key_dim > kHeadDimMax || a.value_dim > kHeadDimMax) return portable::delta_attention(a);
  run_heads<DeltaHead<V>>(a);
}

template <class V>
inline typename V::F sigmoid(typename V::F z) {
  return V::div(V::set(1), V::add(V::set(1), exp<V>(V::sub(V::set(0), z))));
}

// log(1 + exp(z)) = max(z, 0) + log(1 + u) with u = exp(-|z|) in [0, 1]; and with t = u / (2 + u),
// at most 1/3, log(1 + u) = 2 atanh(t), whose series is cut off at t^17 / 17 < 5e-10.
template <class V>
inline typename V::F softplus(typename V::F z) {
  auto u = exp<V>(V::min(z, V::sub(V::set(0), z)));
  auto t = V::div(u, V::add(u, V::set(2)));
  auto t2 = V::mul(t, t);
  auto series = V::set(1.0f / 15);
  for (float odd : {13.0f, 11.0f, 9.0f, 7.0f, 5.0f, 3.0f, 1.0f}) {
    series = V::fma(series, t2, V::set(1 / odd));
  }
  return V::fma(V::add(t, t), series, V::max(z, V::set(0)));
}

template <class V>
void delta_gates(const DeltaGatesArgs& a) {
  int64_t grain = rows_per_job(a.heads * a.key_dim);
  parallel_for(a.launch, a.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * a.heads; i < end * a.heads; ++i) {
      int64_t r = i / a.heads, h = i % a.heads;
      const float* logits = a.decay_logits + r * a.decay_row_stride + h * a.key_dim;
      auto rate = exp<V>(V::set(a.log_rate[h]));
      for (int64_t c = 0; c < a.key_dim; c += V::kLanes) {
        int64_t n = a.key_dim - c;
        auto z = V::add(load_up_to<V>(logits + c, n), load_up_to<V>(a.bias + h * a.key_dim + c, n));
        auto log_decay = a.lower_bound < 0
                             ? V::mul(V::set(a.lower_bound), sigmoid<V>(V::mul(rate, z)))
                             : V::mul(V::sub(V::set(0), rate), softplus<V>(z));
        store_up_to<V>(a.decay + i * a.key_dim + c, n, exp<V>(log_decay));
      }
      auto beta = sigmoid<V>(V::set(a.beta_logits[r * a.beta_row_stride + h]));
      a.beta[i] = V::lane0(beta);
    }
  });
}

}  // namespace banyan::simd
