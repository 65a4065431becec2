// The gated feed-forward block: down(silu(gate(x)) * up(x)).
#pragma once

#include <string_view>

#include "nn/linear.h"
#include "ops/rowwise.h"

namespace banyan {

struct GatedMlpNames {
  std::string_view gate = "gate_proj", up = "up_proj", down = "down_proj";
};

class GatedMlp {
 public:
  // `limit`: of SwiGLU, see SiluMulArgs; 0: none.
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, float limit = 0)
      : GatedMlp(b, hidden, intermediate, bias, limit, units_of_width(intermediate, b.rank())) {}

  Tensor operator()(Step& s, Tensor x) const {
    return down_(s, silu_mul(s, gate_up_(s, x), limit_));
  }

 private:
  // `units`: of the intermediate width, which ranks divide.
  GatedMlp(Builder b, int64_t hidden, int64_t intermediate, bool bias, float limit, int64_t units)
      : gate_up_(b,
                 {{"gate_proj", intermediate, Shard::rows(units)},
                  {"up_proj", intermediate, Shard::rows(units)}},
                 hidden, bias),
        down_(b, {{"down_proj", hidden, Shard::columns(units)}}, intermediate, bias),
        limit_(limit) {}

  Linear gate_up_;
  Linear down_;
  float limit_;
};

}  // namespace banyan
