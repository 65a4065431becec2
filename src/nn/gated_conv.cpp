#include "nn/gated_conv.h"

#include "base/check.h"

namespace banyan {

GatedConv::GatedConv(Builder b, const GatedConvConfig& c, int64_t units)
    : input_(b, {{"in_proj", 3 * c.hidden, Shard::rows(units, {c.hidden, c.hidden, c.hidden})}},
             c.hidden, c.bias),
      conv_(b, {{"conv", c.hidden, Shard::rows(units)}},
            {.taps = c.taps, .bias = c.bias, .silu = false}),
      output_(b, {{"out_proj", c.hidden, Shard::columns(units)}}, c.hidden, c.bias) {
  CHECK(units > 0 && c.hidden % units == 0, "{} channels in {} units", c.hidden, units);
}

Tensor GatedConv::operator()(Step& s, Tensor x) const {
  Tensor bcx = input_(s, x);  // [T, 3 channels]
  int64_t channels = bcx.dim(1) / 3;
  Tensor gated = gate_mul(s, GateFunction::kIdentity, bcx.columns(0, channels),
                          bcx.columns(2 * channels, channels));
  Tensor mixed = conv_(s, gated);
  return output_(s, gate_mul(s, GateFunction::kIdentity, bcx.columns(channels, channels), mixed));
}

}  // namespace banyan
