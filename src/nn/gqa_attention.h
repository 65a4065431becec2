// Grouped-query attention with rotary positions: q, k and v in one product, keys and values in
// pages, optionally a norm on every head of q and k before they turn (Qwen3). Ranks divide the
// heads of keys and values, each with its queries.
#pragma once

#include <optional>
#include <string_view>

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/attention.h"

namespace banyan {

// What a checkpoint calls the parts of the layer. Where q, k and v are one matrix, one below the
// other, `qkv` is its name.
struct GqaNames {
  std::string_view qkv = "";
  std::string_view output = "o_proj", q_norm = "q_norm", k_norm = "k_norm";
};

struct GqaConfig {
  int64_t hidden = 0;
  int64_t q_heads = 0, kv_heads = 0, head_dim = 0;
  int64_t window_tokens = 0;  // 0: all earlier positions
  bool qkv_bias = false, output_bias = false;
  bool head_norms = false;  // q_norm and k_norm
  float eps = 0;            // of the head norms
  GqaNames names = {};
};

class GqaAttention {
 public:
  GqaAttention(Builder b, const GqaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

 private:
  AttentionShape shape_;
  Linear qkv_;
  Linear output_;
  std::optional<RmsNorm> q_norm_, k_norm_;
  StateId keys_, values_;
};

}  // namespace banyan
