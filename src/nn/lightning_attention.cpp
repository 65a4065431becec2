#include "nn/lightning_attention.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// ALiBi slopes: 2^(-8 (h + 1) / heads). If `heads` is not a power of two, first the slopes for the
// next lower power of two, then every second slope of the next higher one.
double alibi_slope(int64_t head, int64_t heads) {
  auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  auto exponent = head < below ? static_cast<double>(head + 1) / below
                               : static_cast<double>(2 * (head - below) + 1) / (2 * below);
  return std::exp2(-8 * exponent);
}

// The log decays of this rank's heads.
Tensor log_decays_of(Builder b, const LightningConfig& c) {
  UnitRange own = b.part(c.heads);
  std::vector<float> all = lightning_log_decays(c.heads, c.layer, c.layers);
  return b.constant({own.count}, slice(all, own.begin, own.count));
}

Linear qkv_gate_of(Builder b, const LightningConfig& c) {
  int64_t width = c.heads * c.head_dim;
  return Linear(b,
                {{"query_key_value", 3 * width, Shard::rows(c.heads, {width, width, width})},
                 {"g_proj", width, Shard::rows(c.heads)}},
                c.hidden, false);
}

}  // namespace

std::vector<float> lightning_log_decays(int64_t heads, int64_t layer, int64_t layers) {
  double depth = layers > 1 ? static_cast<double>(layer - 1) / (layers - 1) : 0;
  std::vector<float> log_decays;
  for (int64_t head = 0; head < heads; ++head) {
    log_decays.push_back(-alibi_slope(head, heads) * (1 - depth + 1e-5));
  }
  return log_decays;
}

LightningAttention::LightningAttention(Builder b, const LightningConfig& c)
    : shape_{.heads = b.part(c.heads).count,
             .key_dim = c.head_dim,
             .value_dim = c.head_dim,
             .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))},
      heads_(c.heads),
      first_head_(b.part(c.heads).begin),
      qkv_gate_(qkv_gate_of(b, c)),
      q_norm_(b / "query_layernorm", c.head_dim, c.eps),
      k_norm_(b / "key_layernorm", c.head_dim, c.eps),
      output_norm_(b / "g_norm", c.heads * c.head_dim, c.norm_groups, c.eps),
      output_(b, {{"dense", c.hidden, Shard::columns(c.heads)}}, c.heads * c.head_dim, false),
      log_decays_(log_decays_of(b, c)),
      state_(recurrent_state(b, shape_, c.chunk_tokens, 0)) {
  CHECK(c.layer >= 0 && c.layer < c.layers, "{} of {}", c.layer, c.layers);
  CHECK(c.heads * c.head_dim % c.norm_groups == 0, "{} heads of {} in {} groups", c.heads,
        c.head_dim, c.norm_groups);
}

Tensor LightningAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  int64_t width = shape_.heads * shape_.key_dim;
  Tensor qkv_gate = qkv_gate_(s, x);  // [T, 4 width]
  Tensor q = q_norm_(s, qkv_gate.columns(0, width));
  Tensor k = k_norm_(s, qkv_gate.columns(width, width));
  q = rope(s, q, shape_.key_dim, rotation, RopeLayout::kHalves);
  k = rope(s, k, shape_.key_dim, rotation, RopeLayout::kHalves);
  Tensor out =
      linear_attention(s, q, k, qkv_gate.columns(2 * width, width), log_decays_, state_, shape_);
  // The norm's groups span the heads of all ranks.
  Tensor normed = output_norm_(s, gather_columns(s, out, heads_));
  return output_(s, gate_mul(s, GateFunction::kSigmoid, qkv_gate.columns(3 * width, width),
                             normed.columns(first_head_ * shape_.value_dim, width)));
}

}  // namespace banyan
