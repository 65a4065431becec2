#include "nn/kda_attention.h"

#include <cmath>

namespace banyan {
namespace {

constexpr float kUnitEps = 1e-6f;  // on the sum of squares of a key or query

// The weights [channels, taps] of three convolutions as one [taps, 3 channels] of this rank's
// channels, so that neighbouring channels lie side by side.
Tensor stack_convolutions(Builder b, const KdaConfig& c) {
  std::vector<float> stacked;
  UnitRange own = b.part(c.heads);
  int64_t taps = c.taps, whole = c.heads * c.head_dim, channels = own.count * c.head_dim;
  int64_t skipped = own.begin * c.head_dim * taps, first = 0;
  for (const char* name : {"q_conv1d", "k_conv1d", "v_conv1d"}) {
    // Around the mean of the inputs, so that random weights do not make zeros of them.
    float center = 1 / static_cast<float>(taps);
    std::vector<float> weight = (b / name).host_values("weight", {whole, taps}, center);
    if (weight.empty()) continue;
    stacked.resize(static_cast<size_t>(3 * channels * taps));
    for (int64_t i = 0; i < channels * taps; ++i) {
      int64_t to = i % taps * 3 * channels + first + i / taps;
      stacked[static_cast<size_t>(to)] = weight[static_cast<size_t>(skipped + i)];
    }
    first += channels;
  }
  return b.constant({taps, 3 * channels}, stacked);
}

Tensor unit_norm(Builder b, int64_t dim) {
  return b.constant(
      {dim}, std::vector<float>(static_cast<size_t>(dim), 1 / std::sqrt(static_cast<float>(dim))));
}

Linear make_gates(Builder b, const KdaConfig& c) {
  int64_t width = c.heads * c.head_dim;
  if (c.low_rank_gates) {
    return Linear(b, {{"f_a_proj", c.head_dim}, {"g_a_proj", c.head_dim}}, c.hidden, false);
  }
  // Of an early Ling 3 release: the names of low rank for matrices of full rank.
  bool old_names = b.has("f_a_proj.weight");
  std::string_view decay = old_names ? "f_a_proj" : "f_proj";
  std::string_view gate = old_names ? "g_a_proj" : "g_proj";
  Shard shard = Shard::rows(c.heads);
  return Linear(b, {{decay, width, shard}, {gate, width, shard}}, c.hidden, false);
}

// transformers saves the output under the name that it has in layers of latent attention.
Linear make_output(Builder b, const KdaConfig& c) {
  std::string_view name = b.has("dense.weight") ? "dense" : "o_proj";
  return Linear(b, {{name, c.hidden, Shard::columns(c.heads)}}, c.heads * c.head_dim, false);
}

StateSpec slot_state(std::string name, int64_t heads, int64_t width) {
  return {.name = std::move(name),
          .unit = StateUnit::kSlot,
          .reach = StateReach::kPoint,
          .heads = heads,
          .width = width};
}

}  // namespace

KdaAttention::KdaAttention(Builder b, const KdaConfig& c)
    : shape_{.heads = b.part(c.heads).count,
             .key_dim = c.head_dim,
             .value_dim = c.head_dim,
             .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))},
      lower_bound_(c.lower_bound),
      qkv_(b,
           {{"q_proj", c.heads * c.head_dim, Shard::rows(c.heads)},
            {"k_proj", c.heads * c.head_dim, Shard::rows(c.heads)},
            {"v_proj", c.heads * c.head_dim, Shard::rows(c.heads)}},
           c.hidden, false),
      gates_(make_gates(b, c)),
      beta_(b, {{"b_proj", c.heads, Shard::rows(c.heads)}}, c.hidden, false),
      log_rate_(b.values("A_log", {c.heads}, 0, Shard::rows(c.heads))),
      decay_bias_(b.values("dt_bias", {c.heads * c.head_dim}, 0, Shard::rows(c.heads))),
      conv_(stack_convolutions(b, c)),
      unit_(unit_norm(b, c.head_dim)),
      output_norm_(b / "o_norm", c.head_dim, c.eps),
      output_(make_output(b, c)) {
  if (c.low_rank_gates) {
    using Parts = std::initializer_list<MatrixPart>;
    Shard shard = Shard::rows(c.heads);
    decay_.emplace(b, Parts{{"f_b_proj", c.heads * c.head_dim, shard}}, c.head_dim, false);
    gate_.emplace(b, Parts{{"g_b_proj", c.heads * c.head_dim, shard}}, c.head_dim, false);
  }
  int64_t width = shape_.heads * c.head_dim;
  conv_state_ = b.state(slot_state("convolution", c.taps - 1, 3 * width));
  StateSpec recurrent = slot_state("recurrent", shape_.heads, c.head_dim * c.head_dim);
  recurrent.alignment_tokens = c.chunk_tokens;
  recurrent.two_forms = true;
  state_ = b.state(recurrent);
}

Tensor KdaAttention::operator()(Step& s, Tensor x) const {
  int64_t width = shape_.heads * shape_.key_dim;
  Tensor qkv = short_conv(s, qkv_(s, x), conv_, conv_state_);  // [T, 3 width]
  // x / sqrt(sum(x^2) + eps) is the root-mean-square norm with another eps and constant weights.
  Tensor qk =
      rms_norm(s, qkv.columns(0, 2 * width), unit_, kUnitEps / static_cast<float>(shape_.key_dim));

  Tensor gates = gates_(s, x);
  int64_t half = gates.dim(1) / 2;
  Tensor decay = gates.columns(0, half), gate = gates.columns(half, half);
  if (decay_) {
    decay = (*decay_)(s, decay);
    gate = (*gate_)(s, gate);
  }
  DeltaGates delta = delta_gates(s, decay, beta_(s, x), log_rate_, decay_bias_, lower_bound_);
  Tensor out = delta_attention(s, qk.columns(0, width), qk.columns(width, width),
                               qkv.columns(2 * width, width), delta, state_, shape_);
  return output_(s, sigmoid_mul(s, gate, output_norm_(s, out)));
}

}  // namespace banyan
