// The gated short convolution of LFM2. One projection gives B, C and x; the output is C * conv(B *
// x), with a causal convolution and no activation. Ranks shard the channels.
#pragma once

#include <cstdint>

#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct GatedConvConfig {
  int64_t hidden = 0;
  int64_t taps = 3;
  bool bias = false;  // for projections and convolution
};

class GatedConv {
 public:
  GatedConv(Builder b, const GatedConvConfig& c)
      : GatedConv(b, c, units_of_width(c.hidden, b.rank())) {}

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  // `units`: sharding units of the channels.
  GatedConv(Builder b, const GatedConvConfig& c, int64_t units);

  Linear input_;  // projects to B, C and x
  ShortConv conv_;
  Linear output_;
};

}  // namespace banyan
