#include "nn/gqa_attention.h"

#include <cmath>

namespace banyan {
namespace {

Linear qkv_of(Builder b, const GqaConfig& c) {
  int64_t q = c.q_heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  if (!c.names.qkv.empty()) {
    Shard shard = Shard::rows(c.kv_heads, {q, kv, kv});
    return Linear(b, {{c.names.qkv, q + 2 * kv, shard}}, c.hidden, c.qkv_bias);
  }
  Shard shard = Shard::rows(c.kv_heads);
  return Linear(b, {{"q_proj", q, shard}, {"k_proj", kv, shard}, {"v_proj", kv, shard}}, c.hidden,
                c.qkv_bias);
}

}  // namespace

GqaAttention::GqaAttention(Builder b, const GqaConfig& c)
    : shape_{.q_heads = b.part(c.kv_heads).count * (c.q_heads / c.kv_heads),
             .kv_heads = b.part(c.kv_heads).count,
             .head_dim = c.head_dim,
             .scale = 1 / std::sqrt(static_cast<float>(c.head_dim)),
             .window_tokens = c.window_tokens},
      qkv_(qkv_of(b, c)),
      output_(b, {{c.names.output, c.hidden, Shard::columns(c.kv_heads)}}, c.q_heads * c.head_dim,
              c.output_bias) {
  if (c.head_norms) {
    q_norm_.emplace(b / c.names.q_norm, c.head_dim, c.eps);
    k_norm_.emplace(b / c.names.k_norm, c.head_dim, c.eps);
  }
  StateSpec spec{.reach = c.window_tokens > 0 ? StateReach::kWindow : StateReach::kAll,
                 .window_tokens = c.window_tokens,
                 .dtype = b.state_dtype(),
                 .heads = shape_.kv_heads,
                 .width = c.head_dim};
  spec.name = "keys";
  keys_ = b.state(spec);
  spec.name = "values";
  values_ = b.state(spec);
}

Tensor GqaAttention::operator()(Step& s, Tensor x, const Rotation& rotation) const {
  int64_t q_width = shape_.q_heads * shape_.head_dim;
  int64_t kv_width = shape_.kv_heads * shape_.head_dim;
  Tensor qkv = qkv_(s, x);  // [T, q_width + 2 kv_width]
  Tensor q = qkv.columns(0, q_width);
  Tensor k = qkv.columns(q_width, kv_width);
  Tensor v = qkv.columns(q_width + kv_width, kv_width);
  if (q_norm_) {
    q = (*q_norm_)(s, q);
    k = (*k_norm_)(s, k);
  }
  q = rope(s, q, shape_.head_dim, rotation, RopeLayout::kHalves);
  k = rope(s, k, shape_.head_dim, rotation, RopeLayout::kHalves);
  write_pages(s, k, keys_);
  write_pages(s, v, values_);
  return output_(s, attention(s, q, keys_, values_, shape_));
}

}  // namespace banyan
