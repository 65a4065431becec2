// Lightning attention as in Ling 2.5: linear attention with a constant decay per head and layer. q,
// k and v have the same number of heads. q and k are normalised per head before rotary; the output
// has a grouped RMSNorm and a gate.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/basic.h"
#include "nn/linear.h"
#include "nn/short_conv.h"
#include "ops/recurrent.h"

namespace banyan {

struct LightningConfig {
  int64_t hidden = 0;
  int64_t heads = 0, head_dim = 0;
  int64_t layer = 0, layers = 1;  // index of this layer, and number of layers
  int64_t norm_groups = 1;        // groups of the output norm
  float eps = 0;                  // of all norms
  int chunk_tokens = 64;          // chunk length of prefill
};

// Log decay per position of each head: -slope (1 - (layer - 1) / (layers - 1) + 1e-5), with ALiBi's
// slopes (Press et al. 2021, arXiv:2108.12409).
std::vector<float> lightning_log_decays(int64_t heads, int64_t layer, int64_t layers);

class LightningAttention {
 public:
  LightningAttention(Builder b, const LightningConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

 private:
  LinearAttentionShape shape_;
  int64_t heads_;       // on all ranks
  int64_t first_head_;  // of this rank
  Linear qkv_gate_;
  RmsNorm q_norm_, k_norm_;
  GroupRmsNorm output_norm_;
  Linear output_;
  Tensor log_decays_;  // [heads]
  SlotState state_;
};

}  // namespace banyan
