// Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464) as in Qwen3-Next and later. q, k and v pass
// through one short convolution, q and k are L2-normalised, and the delta rule has one decay per
// value head. The output has an RMSNorm per head and a SiLU gate. Several value heads share a key
// head. No rotary. Ranks shard the key heads, each with its value heads.
#pragma once

#include <cstdint>

#include "nn/basic.h"
#include "nn/linear.h"
#include "nn/short_conv.h"

namespace banyan {

struct GatedDeltaConfig {
  int64_t hidden = 0;
  int64_t key_heads = 0, value_heads = 0;
  int64_t key_dim = 0, value_dim = 0;  // per head
  int64_t taps = 4;                    // of the convolution
  // Qwen3-Next interleaves by key head: in_proj_qkvz holds q, k, v and z of one key head, then of
  // the next; in_proj_ba holds b and a. If false: in_proj_qkv, in_proj_z, in_proj_b and in_proj_a.
  // A file may still have in_proj_qkv and in_proj_z.
  bool fused_by_head = false;
  // The columns of out_proj are sorted by a value head's number within its key head, as llama.cpp's
  // converter leaves them: they cannot be moved without splitting blocks. Not on several ranks.
  bool tiled_values = false;
  float eps = 0;          // of the output norm
  int chunk_tokens = 64;  // chunk length of prefill
};

class GatedDelta {
 public:
  GatedDelta(Builder b, const GatedDeltaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x) const;

 private:
  LinearAttentionShape shape_;
  bool tiled_values_;
  Linear input_;
  ShortConv conv_;  // over q, k and v
  UnitNorm unit_;
  Tensor log_rate_, decay_bias_;  // [heads]
  RmsNorm output_norm_;
  Linear output_;
  SlotState state_;
};

}  // namespace banyan
