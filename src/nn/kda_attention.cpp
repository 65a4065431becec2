#include "nn/kda_attention.h"

#include <cmath>

#include "base/check.h"

namespace banyan {
namespace {

// Everything that is computed of x: q, k and v, then logits of decays and gate or, of low rank, the
// inputs of the products that make these, and logits of beta.
Linear make_input(Builder b, const KdaConfig& c) {
  int64_t width = c.heads * c.head_dim;
  Shard shard = Shard::rows(c.heads);
  MatrixPart q = {"q_proj", width, shard}, k = {"k_proj", width, shard},
             v = {"v_proj", width, shard}, beta = {"b_proj", c.heads, shard};
  if (c.low_rank_gates) {
    return Linear(b, {q, k, v, {"f_a_proj", c.head_dim}, {"g_a_proj", c.head_dim}, beta}, c.hidden,
                  false);
  }
  // An early Ling 3 release stores full-rank gates under the names of low-rank ones.
  bool old_names = b.has("f_a_proj.weight");
  std::string_view decay = old_names ? "f_a_proj" : "f_proj";
  std::string_view gate = old_names ? "g_a_proj" : "g_proj";
  return Linear(b, {q, k, v, {decay, width, shard}, {gate, width, shard}, beta}, c.hidden, false);
}

// transformers stores the output projection under the name it has in MLA layers.
Linear make_output(Builder b, const KdaConfig& c) {
  std::string_view name = b.has("dense.weight") ? "dense" : "o_proj";
  return Linear(b, {{name, c.hidden, Shard::columns(c.heads)}}, c.heads * c.head_dim, false);
}

}  // namespace

KdaAttention::KdaAttention(Builder b, const KdaConfig& c)
    : shape_{.heads = b.part(c.heads).count,
             .key_dim = c.head_dim,
             .value_dim = c.head_dim,
             .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))},
      lower_bound_(c.lower_bound),
      input_(make_input(b, c)),
      log_rate_(b.values("A_log", {c.heads}, 0, Shard::rows(c.heads))),
      decay_bias_(b.values("dt_bias", {c.heads * c.head_dim}, 0, Shard::rows(c.heads))),
      conv_(b,
            {{"q_conv1d", c.heads * c.head_dim, Shard::rows(c.heads)},
             {"k_conv1d", c.heads * c.head_dim, Shard::rows(c.heads)},
             {"v_conv1d", c.heads * c.head_dim, Shard::rows(c.heads)}},
            {.taps = c.taps}),
      unit_(b, c.head_dim),
      output_norm_(b / "o_norm", c.head_dim, c.eps),
      output_(make_output(b, c)) {
  CHECK(c.heads > 0 && c.head_dim > 0 && c.chunk_tokens > 0, "{} heads of {}, chunks of {}",
        c.heads, c.head_dim, c.chunk_tokens);
  if (c.low_rank_gates) {
    using Parts = std::initializer_list<MatrixPart>;
    Shard shard = Shard::rows(c.heads);
    decay_.emplace(b, Parts{{"f_b_proj", c.heads * c.head_dim, shard}}, c.head_dim, false);
    gate_.emplace(b, Parts{{"g_b_proj", c.heads * c.head_dim, shard}}, c.head_dim, false);
  }
  state_ = recurrent_state(b, shape_, c.chunk_tokens, c.head_dim);
}

Tensor KdaAttention::operator()(Step& s, Tensor x) const {
  int64_t width = shape_.heads * shape_.key_dim;
  Tensor in = input_(s, x);
  int64_t half = (in.dim(1) - 3 * width - shape_.heads) / 2;
  Tensor decay = in.columns(3 * width, half), gate = in.columns(3 * width + half, half);
  Tensor beta = in.columns(in.dim(1) - shape_.heads, shape_.heads);
  if (decay_) {
    decay = (*decay_)(s, decay);
    gate = (*gate_)(s, gate);
  }

  // The norms and the gates follow each other, so that a GPU may compute them at once.
  Tensor qkv = conv_(s, in.columns(0, 3 * width));
  Tensor qk = unit_(s, qkv.columns(0, 2 * width));
  DeltaGates delta = delta_gates(s, decay, beta, log_rate_, decay_bias_, lower_bound_);
  Tensor out = delta_attention(s, qk.columns(0, width), qk.columns(width, width),
                               qkv.columns(2 * width, width), delta, state_, shape_);
  return output_(s, gate_mul(s, GateFunction::kSigmoid, gate, output_norm_(s, out)));
}

}  // namespace banyan
