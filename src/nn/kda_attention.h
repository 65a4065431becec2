// Kimi Delta Attention (Kimi Team 2025, arXiv:2510.26692). q, k and v pass through short
// convolutions, q and k are L2-normalised, and the delta rule has one decay per channel. The output
// has an RMSNorm per head and a gate. No rotary: decays and convolutions encode position. Ranks
// shard the heads.
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
  int64_t heads = 0, head_dim = 0;  // same for keys and values
  int64_t taps = 4;                 // of the convolutions
  // Kimi: decay and gate logits go through rank head_dim (f_a_proj, f_b_proj, g_a_proj, g_b_proj).
  // If false, each is one full-rank projection (f_proj, g_proj).
  bool low_rank_gates = false;
  float lower_bound = 0;  // of the log decay; 0: the softplus form, which has no bound
  float eps = 0;          // of the output norm
  int chunk_tokens = 64;  // chunk length of prefill
};

class KdaAttention {
 public:
  KdaAttention(Builder b, const KdaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  LinearAttentionShape shape_;
  float lower_bound_;
  Linear input_;
  std::optional<Linear> decay_, gate_;  // second projections, of low rank
  Tensor log_rate_, decay_bias_;
  ShortConv conv_;  // over q, k and v
  UnitNorm unit_;
  RmsNorm output_norm_;
  Linear output_;
  SlotState state_;
};

}  // namespace banyan
