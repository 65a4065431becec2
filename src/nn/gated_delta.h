// Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464) as Qwen3-Next and later publish it: q, k and
// v through one short convolution, keys and queries of length 1, the delta rule with a decay of
// each head of values, and a norm on every head of what comes out, gated by silu. Several heads of
// values share a key. No rotation. Ranks divide the heads of keys, each with its values.
#pragma once

#include <cstdint>

#include "nn/basic.h"
#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct GatedDeltaConfig {
  int64_t hidden = 0;
  int64_t key_heads = 0, value_heads = 0;
  int64_t key_dim = 0, value_dim = 0;  // of a head
  int64_t taps = 4;                    // of the convolution
  // Qwen3-Next: in_proj_qkvz has q, k, v and z of one head of keys, then those of the next, and
  // in_proj_ba b and a. Otherwise in_proj_qkv, in_proj_z, in_proj_b and in_proj_a.
  bool fused_by_head = false;
  float eps = 0;          // of the output's norm
  int chunk_tokens = 64;  // of the prefill form
};

class GatedDelta {
 public:
  GatedDelta(Builder b, const GatedDeltaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  LinearAttentionShape shape_;
  Linear qkvz_;
  Linear beta_decay_;  // logits of strengths, then of decays
  ShortConv conv_;     // of q, k and v
  UnitNorm unit_;
  Tensor log_rate_, decay_bias_;  // [heads]
  RmsNorm output_norm_;
  Linear output_;
  StateId state_;
};

}  // namespace banyan
