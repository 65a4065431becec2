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
      : gate_up_(b, {{"gate_proj", intermediate}, {"up_proj", intermediate}}, hidden, bias),
        down_(b, {{"down_proj", hidden}}, intermediate, bias),
        limit_(limit) {}

  Tensor operator()(Step& s, Tensor x) const {
    return down_(s, silu_mul(s, gate_up_(s, x), limit_));
  }

 private:
  Linear gate_up_;
  Linear down_;
  float limit_;
};

}  // namespace banyan
