#include "nn/lightning_attention.h"

#include <bit>
#include <cmath>

namespace banyan {
namespace {

// 2^(-8 (h + 1) / heads); where `heads` is no power of two, those of the power of two below it and
// then every second one of the power of two above it.
double alibi_slope(int64_t head, int64_t heads) {
  auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  auto exponent =
      head < below ? static_cast<double>(head + 1) / static_cast<double>(below)
                   : static_cast<double>(2 * (head - below) + 1) / static_cast<double>(2 * below);
  return std::exp2(-8 * exponent);
}

}  // namespace

std::vector<float> lightning_log_decays(int64_t heads, int64_t layer, int64_t layers) {
  double depth = layers > 1 ? static_cast<double>(layer - 1) / static_cast<double>(layers - 1) : 0;
  std::vector<float> log_decays;
  for (int64_t head = 0; head < heads; ++head) {
    log_decays.push_back(static_cast<float>(-alibi_slope(head, heads) * (1 - depth + 1e-5)));
  }
  return log_decays;
}

LightningAttention::LightningAttention(Builder b, const LightningConfig& c)
    : shape_{.heads = c.heads,
             .key_dim = c.head_dim,
             .value_dim = c.head_dim,
             .scale = 1 / std::sqrt(static_cast<float>(c.head_dim))},
      qkv_gate_(b,
                {{"query_key_value", 3 * c.heads * c.head_dim}, {"g_proj", c.heads * c.head_dim}},
                c.hidden, false),
      q_norm_(b / "query_layernorm", c.head_dim, c.eps),
      k_norm_(b / "key_layernorm", c.head_dim, c.eps),
      output_norm_(b / "g_norm", c.heads * c.head_dim, c.norm_groups, c.eps),
      output_(b, {{"dense", c.hidden}}, c.heads * c.head_dim, false),
      log_decays_(b.constant({c.heads}, lightning_log_decays(c.heads, c.layer, c.layers))),
      state_(b.state({.name = "recurrent",
                      .unit = StateUnit::kSlot,
                      .reach = StateReach::kPoint,
                      .heads = c.heads,
                      .width = c.head_dim * c.head_dim,
                      .alignment_tokens = c.chunk_tokens,
                      .two_forms = true})) {}

Tensor LightningAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  int64_t width = shape_.heads * shape_.key_dim;
  Tensor qkv_gate = qkv_gate_(s, x);  // [T, 4 width]
  Tensor q = q_norm_(s, qkv_gate.columns(0, width));
  Tensor k = k_norm_(s, qkv_gate.columns(width, width));
  q = rope(s, q, shape_.key_dim, rotation, RopeLayout::kHalves);
  k = rope(s, k, shape_.key_dim, rotation, RopeLayout::kHalves);
  Tensor out =
      linear_attention(s, q, k, qkv_gate.columns(2 * width, width), log_decays_, state_, shape_);
  return output_(s, sigmoid_mul(s, qkv_gate.columns(3 * width, width), output_norm_(s, out)));
}

}  // namespace banyan
