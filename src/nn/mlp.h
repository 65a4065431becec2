// The feed-forward blocks. The gated one: down(f(gate(x)) * up(x)), where f is silu unless it is
// said.
#pragma once

#include <string_view>

#include "nn/linear.h"
#include "ops/rowwise.h"

namespace banyan {

struct GatedMlpNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
  std::string_view gate_up = "";  // where gate and up are one matrix, one below the other: its name
};

// What becomes of gates and ups; see SiluMulArgs.
struct Glu {
  GluForm form = GluForm::kSilu;
  float limit = 0;  // 0: none
};

class GatedMlp {
 public:
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, const Glu& glu = {},
           const GatedMlpNames& names = {})
      : GatedMlp(b, hidden, intermediate, bias, glu, names,
                 units_of_width(intermediate, b.rank())) {}

  Tensor operator()(Step& s, Tensor x) const {
    return down_(s, silu_mul(s, gate_up_(s, x), glu_.limit, glu_.form));
  }

 private:
  // `units`: of the intermediate width, which ranks divide.
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

// The square of what is positive in x, of every element.
inline Tensor square_relu(Step& s, Tensor x) {
  return gate_mul(s, GateFunction::kRelu, x, x);
}

// The block without a gate: down(square_relu(up(x))).
class SquareReluMlp {
 public:
  SquareReluMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias)
      : SquareReluMlp(b, hidden, intermediate, bias, units_of_width(intermediate, b.rank())) {}

  Tensor operator()(Step& s, Tensor x) const { return down_(s, square_relu(s, up_(s, x))); }

 private:
  SquareReluMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, int64_t units)
      : up_(b, {{"up_proj", intermediate, Shard::rows(units)}}, hidden, bias),
        down_(b, {{"down_proj", hidden, Shard::columns(units)}}, intermediate, bias) {}

  Linear up_, down_;
};

}  // namespace banyan
