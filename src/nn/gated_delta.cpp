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

// Everything that is computed of x: q, k, v and z, then logits of beta and of decays.
Linear make_input(Builder b, const GatedDeltaConfig& c) {
  int64_t k = c.key_heads * c.key_dim, v = c.value_heads * c.value_dim, heads = c.value_heads;
  Shard shard = Shard::rows(c.key_heads);
  MatrixPart qkv = {"in_proj_qkv", 2 * k + v, Shard::rows(c.key_heads, {k, k, v})},
             z = {"in_proj_z", v, shard};
  if (!c.fused_by_head) {
    return Linear(b, {qkv, z, {"in_proj_b", heads, shard}, {"in_proj_a", heads, shard}}, c.hidden,
                  false);
  }
  MatrixPart beta_decay = {"in_proj_ba", 2 * heads,
                           Shard::rows_of_runs(c.key_heads, c.key_heads, {heads, heads})};
  if (b.has("in_proj_qkv.weight")) return Linear(b, {qkv, z, beta_decay}, c.hidden, false);
  Shard of_runs = Shard::rows_of_runs(c.key_heads, c.key_heads, {k, k, v, v});
  return Linear(b, {{"in_proj_qkvz", 2 * (k + v), of_runs}, beta_decay}, c.hidden, false);
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
      input_(make_input(b, c)),
      conv_(make_conv(b, c)),
      unit_(b, c.key_dim),
      log_rate_(b.values("A_log", {c.value_heads}, 0, Shard::rows(c.key_heads))),
      decay_bias_(b.values("dt_bias", {c.value_heads}, 0, Shard::rows(c.key_heads))),
      output_norm_(b / "norm", c.value_dim, c.eps),
      // An adapter's columns would be in the checkpoint's order.
      output_(tiled_values_ ? b.without_adapters() : b,
              {{"out_proj", c.hidden, Shard::columns(c.key_heads)}}, c.value_heads * c.value_dim,
              false),
      state_(recurrent_state(b, shape_, c.chunk_tokens, 1)) {
  if (tiled_values_ && !b.rank().alone()) {
    b.reject("out_proj has the order of a GGUF file, which is not supported on several ranks");
  }
}

Tensor GatedDelta::operator()(Step& s, Tensor x) const {
  int64_t keys = shape_.key_width(), values = shape_.value_width();
  Tensor in = input_(s, x);
  Tensor qkv = conv_(s, in.columns(0, 2 * keys + values));
  Tensor qk = unit_(s, qkv.columns(0, 2 * keys));
  Tensor logits = in.columns(2 * (keys + values), 2 * shape_.heads);
  DeltaGates gates = delta_gates(s, logits.columns(shape_.heads, shape_.heads),
                                 logits.columns(0, shape_.heads), log_rate_, decay_bias_, 0);
  Tensor out = delta_attention(s, qk.columns(0, keys), qk.columns(keys, keys),
                               qkv.columns(2 * keys, values), gates, state_, shape_);
  Tensor gate = in.columns(2 * keys + values, values);
  out = gate_mul(s, GateFunction::kSilu, gate, output_norm_(s, out));
  if (tiled_values_) out = swap_heads(s, out, shape_.heads / shape_.group, shape_.group);
  return output_(s, out);
}

}  // namespace banyan
