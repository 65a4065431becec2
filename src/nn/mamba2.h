// Mamba 2 (Dao and Gu 2024, arXiv:2405.21060). One projection gives a gate z, x, B, C and time
// steps. x, B and C pass through a short convolution into a state space model; the output is gated,
// then normalised per group. The heads of a group share B and C. Ranks shard the groups.
#pragma once

#include <cstdint>

#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct Mamba2Config {
  int64_t hidden = 0;
  int64_t heads = 0, head_dim = 0;
  int64_t groups = 1;     // number of head groups
  int64_t state_dim = 0;  // width of B and C per group
  int64_t taps = 4;       // of the convolution
  bool conv_bias = true, proj_bias = false;
  StepLimits step = {};
  float eps = 0;          // of the output norm
  int chunk_tokens = 64;  // chunk length of prefill
};

class Mamba2 {
 public:
  Mamba2(Builder b, const Mamba2Config& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  LinearAttentionShape shape_;
  StepLimits limits_;
  float eps_;
  Linear input_;  // projects to z, x, B, C and time steps
  ShortConv conv_;
  Tensor log_rate_, step_bias_, skip_;  // [heads]
  Tensor norm_weight_;                  // [values]
  Linear output_;
  SlotState state_;
};

}  // namespace banyan
