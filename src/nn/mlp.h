// The gated feed-forward block: down(silu(gate(x)) * up(x)).
#pragma once

#include "nn/linear.h"
#include "ops/rowwise.h"

namespace banyan {

class GatedMlp {
 public:
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias)
      : gate_up_(b, {{"gate_proj", intermediate}, {"up_proj", intermediate}}, hidden, bias),
        down_(b, {{"down_proj", hidden}}, intermediate, bias) {}

  Tensor operator()(Step& s, Tensor x) const { return down_(s, silu_mul(s, gate_up_(s, x))); }

 private:
  Linear gate_up_;
  Linear down_;
};

}  // namespace banyan
