// Mamba 2 (Dao and Gu 2024, arXiv:2405.21060): one product makes a gate z, x, B, C and time steps;
// x, B and C pass a short convolution; a state space takes them in; and a norm over each
// group follows the gate. Heads in groups share B and C. Ranks divide the groups.
#pragma once

#include <cstdint>

#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct Mamba2Config {
  int64_t hidden = 0;
  int64_t heads = 0, head_dim = 0;
  int64_t groups = 1;     // of heads
  int64_t state_dim = 0;  // of B and C, for each group
  int64_t taps = 4;       // of the convolution
  bool conv_bias = true, proj_bias = false;
  StepLimits step = {};
  float eps = 0;          // of the output's norm
  int chunk_tokens = 64;  // of the prefill form
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
  Linear input_;  // z, x, B, C, steps
  ShortConv conv_;
  Tensor log_rate_, step_bias_, skip_;  // [heads]
  Tensor norm_weight_;                  // [values]
  Linear output_;
  StateId state_;
};

}  // namespace banyan
