// Grouped-query attention with rotary positions: q, k and v in one product, keys and values in
// pages. Ranks divide the heads of keys and values, each with its queries.
//
// Families differ only in configuration: biases, norms on q and k before or after rotation,
// windows, chunks, sinks, caps, layers without rotation, queries scaled by position, output gates,
// values equal to keys, and a KV cache shared with an earlier layer. Attention may be limited to a
// few blocks of keys, chosen by the keys themselves (MoBA) or by an index (MiniMax-M3).
#pragma once

#include <optional>
#include <string_view>

#include "nn/basic.h"
#include "nn/block_index.h"
#include "nn/linear.h"
#include "ops/moba.h"

namespace banyan {

// The checkpoint's names of the layer's parts. If q, k and v are stacked in one matrix, `qkv` is
// its name.
struct GqaNames {
  std::string_view qkv = "";
  std::string_view output = "o_proj", q_norm = "q_norm", k_norm = "k_norm";
};

// Where a layer keeps its keys and values.
struct GqaStates {
  StateId keys = -1, values = -1;
};

struct GqaConfig {
  int64_t hidden = 0;
  int64_t input = 0;  // columns of x; 0: as many as hidden
  int64_t q_heads = 0, kv_heads = 0, head_dim = 0;
  int64_t window_tokens = 0;  // 0: all earlier positions
  int64_t chunk_tokens = 0;   // not 0: only positions of the same chunk are visible (Llama 4)
  bool qkv_bias = false, output_bias = false;
  bool head_norms = false;                      // q_norm and k_norm, of each head
  bool row_norms = false;                       // the same over all heads together
  NormWeight norm_weight = NormWeight::kPlain;  // of these
  bool norm_after_rope = false;                 // head_norms alone
  bool value_norm = false;                      // of each head, without a weight
  bool value_is_key = false;                    // values are the output of k_proj, before its norm
  float eps = 0;                                // of the norms
  bool rotary = true;
  RopeLayout layout = RopeLayout::kHalves;
  double scale = 0;           // of the scores; 0: 1 / sqrt(head_dim)
  PositionScale query_scale;  // of queries, after rotation
  float soft_cap = 0;         // of the scores; 0: none
  bool sinks = false;         // a learned extra logit in each head's softmax
  // The output is multiplied by the sigmoid of a gate; q_proj has the query of one head, then its
  // gate, then those of the next head (Qwen3-Next).
  bool gated = false;
  // Absent: all keys, unless options request blocks. block_tokens 0: all keys, whatever the
  // options.
  std::optional<MobaShape> moba;
  std::optional<BlockIndexConfig> index;  // attention only to the blocks that it chooses
  std::optional<GqaStates> shared;        // an earlier layer's KV cache, used instead of its own
  GqaNames names = {};
};

class GqaAttention {
 public:
  GqaAttention(Builder b, const GqaConfig& c);

  // x [T, input] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

  GqaStates states() const { return states_; }

 private:
  // The heads in the result of the product, normed over all of them if that is to be.
  Heads heads_of(Step& s, Tensor qkv) const;
  Tensor normed(Step& s, Tensor x, const RmsNorm& norm) const;
  // Attention of q, computed from x -> the shape of q.
  Tensor attend(Step& s, Tensor x, Tensor q, const Rotation& rotation) const;

  AttentionShape shape_;
  int64_t kv_heads_whole_;  // over all ranks
  bool gated_, value_is_key_, shares_;
  HeadForm form_;
  PositionScale query_scale_;
  MobaShape moba_;
  Linear qkv_;  // queries, their gates if there are any, keys and values
  Linear output_;
  std::optional<RmsNorm> q_norm_, k_norm_;  // over all heads
  Tensor sinks_;
  GqaStates states_;
  StateId key_sums_ = -1;  // with MoBA
  std::optional<BlockIndex> index_;
};

}  // namespace banyan
