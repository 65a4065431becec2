#include "nn/gated_delta.h"

#include <cmath>

#include "base/check.h"
#include "ops/head_order.h"

namespace banyan {
namespace {

const GatedDeltaConfig& checked(const GatedDeltaConfig& c) {
  CHECK(c.key_heads > 0 && c.value_heads % c.key_heads == 0, "{} value heads, {} key heads",
        c.value_heads, c.key_heads);
  return c;
}

Linear make_qkvz(Builder b, const GatedDeltaConfig& c) {
  int64_t k = c.key_heads * c.key_dim, v = c.value_heads * c.value_dim;
  if (c.fused_by_head && !b.has("in_proj_qkv.weight")) {
    Shard shard = Shard::rows_of_runs(c.key_heads, c.key_heads, {k, k, v, v});
    return Linear(b, {{"in_proj_qkvz", 2 * (k + v), shard}}, c.hidden, false);
  }
  return Linear(b,
                {{"in_proj_qkv", 2 * k + v, Shard::rows(c.key_heads, {k, k, v})},
                 {"in_proj_z", v, Shard::rows(c.key_heads)}},
                c.hidden, false);
}

Linear make_beta_decay(Builder b, const GatedDeltaConfig& c) {
  int64_t heads = c.value_heads;
  if (c.fused_by_head) {
    Shard shard = Shard::rows_of_runs(c.key_heads, c.key_heads, {heads, heads});
    return Linear(b, {{"in_proj_ba", 2 * heads, shard}}, c.hidden, false);
  }
  Shard shard = Shard::rows(c.key_heads);
  return Linear(b, {{"in_proj_b", heads, shard}, {"in_proj_a", heads, shard}}, c.hidden, false);
}

// The convolution's channels are q, k and v, in this order for every projection layout.
ShortConv make_conv(Builder b, const GatedDeltaConfig& c) {
  int64_t k = c.key_heads * c.key_dim, v = c.value_heads * c.value_dim;
  Shard shard = Shard::rows(c.key_heads, {k, k, v});
  return ShortConv(b, {{"conv1d", 2 * k + v, shard}}, {.taps = c.taps});
}

}  // namespace

GatedDelta::GatedDelta(Builder b, const GatedDeltaConfig& c)
    : shape_{.heads = b.part(checked(c).key_heads).count * (c.value_heads / c.key_heads),
             .key_dim = c.key_dim,
             .value_dim = c.value_dim,
             .group = c.value_heads / c.key_heads,
             .scale = 1 / std::sqrt(static_cast<float>(c.key_dim))},
      tiled_values_(c.tiled_values && shape_.group > 1),
      qkvz_(make_qkvz(b, c)),
      beta_decay_(make_beta_decay(b, c)),
      conv_(make_conv(b, c)),
      unit_(b, c.key_dim),
      log_rate_(b.values("A_log", {c.value_heads}, 0, Shard::rows(c.key_heads))),
      decay_bias_(b.values("dt_bias", {c.value_heads}, 0, Shard::rows(c.key_heads))),
      output_norm_(b / "norm", c.value_dim, c.eps),
      output_(b, {{"out_proj", c.hidden, Shard::columns(c.key_heads)}}, c.value_heads * c.value_dim,
              false),
      state_(recurrent_state(b, shape_, c.chunk_tokens, 1)) {
  if (tiled_values_ && !b.rank().alone()) {
    b.reject("out_proj has the order of a GGUF file, which is not supported on several ranks");
  }
}

Tensor GatedDelta::operator()(Step& s, Tensor x) const {
  int64_t keys = shape_.key_width(), values = shape_.value_width();
  // Products of the same x follow each other: some kernels prepare it once.
  Tensor qkvz = qkvz_(s, x), logits = beta_decay_(s, x);  // [T, 2 keys + 2 values] and gates
  Tensor qkv = conv_(s, qkvz.columns(0, 2 * keys + values));
  Tensor qk = unit_(s, qkv.columns(0, 2 * keys));
  DeltaGates gates = delta_gates(s, logits.columns(shape_.heads, shape_.heads),
                                 logits.columns(0, shape_.heads), log_rate_, decay_bias_, 0);
  Tensor out = delta_attention(s, qk.columns(0, keys), qk.columns(keys, keys),
                               qkv.columns(2 * keys, values), gates, state_, shape_);
  Tensor gate = qkvz.columns(2 * keys + values, values);
  out = gate_mul(s, GateFunction::kSilu, gate, output_norm_(s, out));
  if (tiled_values_) out = swap_heads(s, out, shape_.heads / shape_.group, shape_.group);
  return output_(s, out);
}

}  // namespace banyan
