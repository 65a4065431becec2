// Kimi Delta Attention: q, k and v through short convolutions, keys and queries of length 1, the
// delta rule with a decay of each channel, and a norm on every head of what comes out, gated. No
// rotation: the decays and convolutions tell positions apart (Kimi Team 2025, arXiv:2510.26692).
// Ranks divide the heads.
#pragma once

#include <cstdint>
#include <optional>

#include "nn/basic.h"
#include "nn/linear.h"
#include "nn/short_conv.h"
#include "ops/recurrent.h"

namespace banyan {

struct KdaConfig {
  int64_t hidden = 0;
  int64_t heads = 0, head_dim = 0;  // of keys and values both
  int64_t taps = 4;                 // of the convolutions
  // Kimi: the logits of decays and of the output's gate pass through a rank of head_dim (f_a_proj,
  // f_b_proj, g_a_proj, g_b_proj). Otherwise they are one product each (f_proj, g_proj).
  bool low_rank_gates = false;
  float lower_bound = 0;  // of a log decay; 0: the softplus law, which has none
  float eps = 0;          // of the output's norm
  int chunk_tokens = 64;  // of the prefill form
};

class KdaAttention {
 public:
  KdaAttention(Builder b, const KdaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  LinearAttentionShape shape_;
  float lower_bound_;
  Linear qkv_;
  Linear gates_;                        // logits of decays and of the output's gate, or ...
  std::optional<Linear> decay_, gate_;  // ... what these make them from
  Linear beta_;
  Tensor log_rate_, decay_bias_;
  ShortConv conv_;  // of q, k and v
  UnitNorm unit_;
  RmsNorm output_norm_;
  Linear output_;
  StateId state_;
};

}  // namespace banyan
