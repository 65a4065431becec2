// The feed-forward blocks. GatedMlp is down(f(gate(x)) * up(x)), with f = SiLU by default;
// SquareReluMlp has no gate.
#pragma once

#include <string_view>

#include "nn/linear.h"
#include "ops/rowwise.h"

namespace banyan {

struct GatedMlpNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string_view gate_up = "";  // name of the fused gate_up matrix; "": stored apart
};

class GatedMlp {
 public:
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, const Glu& glu = {},
           const GatedMlpNames& names = {})
      : GatedMlp(b, hidden, intermediate, bias, glu, names,
                 units_of_width(intermediate, b.rank())) {}

  Tensor operator()(Step& s, Tensor x) const {
    Gates gates = up(s, x);
    return down(s, activate(s, gates), gates.next);
  }
  // The same in three steps.
  Gates up(Step& s, Tensor x) const { return gate_up_.gates(s, x, glu_); }
  Tensor activate(Step& s, const Gates& gates) const { return banyan::activate(s, gates, glu_); }
  Tensor down(Step& s, Tensor activated, Workspace workspace) const {
    return down_(s, activated, workspace);
  }

 private:
  // `units`: sharding units of the intermediate width.
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, const Glu& glu,
           const GatedMlpNames& names, int64_t units)
      : gate_up_(gate_up_of(b, hidden, intermediate, bias, names, units)),
        down_(b, {{names.down, hidden, Shard::columns(units)}}, intermediate, bias),
        glu_(glu) {}

  static Linear gate_up_of(Builder b, int64_t hidden, int64_t intermediate, bool bias,
                           const GatedMlpNames& names, int64_t units) {
    if (!names.gate_up.empty()) {
      Shard halves = Shard::rows(units, {intermediate, intermediate});
      return Linear(b, {{names.gate_up, 2 * intermediate, halves}}, hidden, bias);
    }
    Shard shard = Shard::rows(units);
    return Linear(b, {{names.gate, intermediate, shard}, {names.up, intermediate, shard}}, hidden,
                  bias);
  }

  Linear gate_up_;
  Linear down_;
  Glu glu_;
};

// Squared ReLU, elementwise.
inline Tensor square_relu(Step& s, Tensor x) {
  return gate_mul(s, GateFunction::kRelu, x, x);
}

// The ungated block: down(square_relu(up(x))).
class SquareReluMlp {
 public:
  SquareReluMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias)
      : SquareReluMlp(b, hidden, intermediate, bias, units_of_width(intermediate, b.rank())) {}

  Tensor operator()(Step& s, Tensor x) const { return down(s, activate(s, up(s, x))); }
  // The same in three steps.
  Tensor up(Step& s, Tensor x) const { return up_(s, x); }
  Tensor activate(Step& s, Tensor up) const { return square_relu(s, up); }
  Tensor down(Step& s, Tensor activated) const { return down_(s, activated); }

 private:
  SquareReluMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, int64_t units)
      : up_(b, {{"up_proj", intermediate, Shard::rows(units)}}, hidden, bias),
        down_(b, {{"down_proj", hidden, Shard::columns(units)}}, intermediate, bias) {}

  Linear up_, down_;
};

}  // namespace banyan
