#include "nn/mamba2.h"

#include "base/check.h"

namespace banyan {
namespace {

const Mamba2Config& checked(const Mamba2Config& c) {
  CHECK(c.groups > 0 && c.heads % c.groups == 0, "{} heads, {} groups", c.heads, c.groups);
  return c;
}

Linear make_input(Builder b, const Mamba2Config& c) {
  int64_t x = c.heads * c.head_dim, bc = c.groups * c.state_dim;
  Shard shard = Shard::rows(c.groups, {x, x, bc, bc, c.heads});
  return Linear(b, {{"in_proj", 2 * x + 2 * bc + c.heads, shard}}, c.hidden, c.proj_bias);
}

ShortConv make_conv(Builder b, const Mamba2Config& c) {
  int64_t x = c.heads * c.head_dim, bc = c.groups * c.state_dim;
  Shard shard = Shard::rows(c.groups, {x, bc, bc});
  return ShortConv(b, {{"conv1d", x + 2 * bc, shard}}, {.taps = c.taps, .bias = c.conv_bias});
}

}  // namespace

Mamba2::Mamba2(Builder b, const Mamba2Config& c)
    : shape_{.heads = b.part(checked(c).groups).count * (c.heads / c.groups),
             .key_dim = c.state_dim,
             .value_dim = c.head_dim,
             .group = c.heads / c.groups},
      limits_(c.step),
      eps_(c.eps),
      input_(make_input(b, c)),
      conv_(make_conv(b, c)),
      log_rate_(b.values("A_log", {c.heads}, 0, Shard::rows(c.groups))),
      step_bias_(b.values("dt_bias", {c.heads}, 0, Shard::rows(c.groups))),
      skip_(b.values("D", {c.heads}, 1, Shard::rows(c.groups))),
      norm_weight_(
          (b / "norm").vector({{"", c.heads * c.head_dim, Shard::rows(c.groups)}}, "weight", 1)),
      output_(b, {{"out_proj", c.hidden, Shard::columns(c.groups)}}, c.heads * c.head_dim,
              c.proj_bias),
      state_(recurrent_state(b, shape_, c.chunk_tokens, 1)) {}

Tensor Mamba2::operator()(Step& s, Tensor x) const {
  int64_t keys = shape_.key_width(), values = shape_.value_width();
  Tensor projected = input_(s, x);  // [T, 2 values + 2 keys + heads]
  Tensor xbc = conv_(s, projected.columns(values, values + 2 * keys));
  Tensor steps = projected.columns(2 * (values + keys), shape_.heads);
  StateSpaceGates gates = state_space_gates(s, steps, step_bias_, log_rate_, limits_);
  Tensor out = state_space(s, xbc.columns(values + keys, keys), xbc.columns(values, keys),
                           xbc.columns(0, values), gates, skip_, state_, shape_);
  out = gate_mul(s, GateFunction::kSilu, projected.columns(0, values), out);
  return output_(s, group_rms_norm(s, out, norm_weight_, shape_.heads / shape_.group, eps_));
}

}  // namespace banyan
