// The gated short convolution of LFM2: of one product B, C and x; C times a causal convolution over
// B times x, without an activation. Ranks divide the channels.
#pragma once

#include <cstdint>

#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct GatedConvConfig {
  int64_t hidden = 0;
  int64_t taps = 3;
  bool bias = false;  // of the products and of the convolution
};

class GatedConv {
 public:
  GatedConv(Builder b, const GatedConvConfig& c)
      : GatedConv(b, c, units_of_width(c.hidden, b.rank())) {}

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  // `units`: of the channels, which ranks divide.
  GatedConv(Builder b, const GatedConvConfig& c, int64_t units);

  Linear input_;  // B, C and x
  ShortConv conv_;
  Linear output_;
};

}  // namespace banyan
