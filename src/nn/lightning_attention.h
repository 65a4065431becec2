// Lightning attention as the Ling 2.5 line publishes it: q, k and v of as many heads each, a norm
// on every head of q and k before they turn, linear attention that decays by a constant of the head
// and the layer, and a norm over groups of columns and a gate on what comes out.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/recurrent.h"

namespace banyan {

struct LightningConfig {
  int64_t hidden = 0;
  int64_t heads = 0, head_dim = 0;
  int64_t layer = 0, layers = 1;  // which of the model's layers this is
  int64_t norm_groups = 1;        // of the output's columns
  float eps = 0;                  // of all its norms
  int chunk_tokens = 64;          // of the prefill form
};

// The logarithm of each head's decay per position: -slope (1 - (layer - 1) / (layers - 1) + 1e-5),
// with the slopes of ALiBi (Press et al. 2021, arXiv:2108.12409).
std::vector<float> lightning_log_decays(int64_t heads, int64_t layer, int64_t layers);

class LightningAttention {
 public:
  LightningAttention(Builder b, const LightningConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

 private:
  LinearAttentionShape shape_;
  int64_t heads_;       // of all ranks
  int64_t first_head_;  // of this one
  Linear qkv_gate_;
  RmsNorm q_norm_, k_norm_;
  GroupRmsNorm output_norm_;
  Linear output_;
  Tensor log_decays_;  // [heads]
  StateId state_;
};

}  // namespace banyan
