// Grouped-query attention with rotary positions: q, k and v in one product, keys and values in
// pages. Ranks divide the heads of keys and values, each with its queries.
//
// The families differ by configuration alone: biases, norms on q and k, before they turn or after,
// windows, chunks, sinks, caps, layers without rotation, queries that grow with the position, a
// gate on what comes out, values that are the keys, keys and values of an earlier layer, attention
// to a few blocks of keys, chosen by the keys themselves (MoBA) or by an index (MiniMax-M3).
#pragma once

#include <optional>
#include <string_view>

#include "nn/basic.h"
#include "nn/block_index.h"
#include "nn/linear.h"
#include "ops/moba.h"

namespace banyan {

// What a checkpoint calls the parts of the layer. Where q, k and v are one matrix, one below the
// other, `qkv` is its name.
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
  int64_t chunk_tokens = 0;   // not 0: positions see those of their chunk alone (Llama 4)
  bool qkv_bias = false, output_bias = false;
  bool head_norms = false;                      // q_norm and k_norm, of each head
  bool row_norms = false;                       // the same over all heads together
  NormWeight norm_weight = NormWeight::kPlain;  // of these
  bool norm_after_turn = false;
  bool value_norm = false;    // of each head, without a weight
  bool value_is_key = false;  // values are what k_proj makes, before its norm
  float eps = 0;              // of the norms
  bool rotary = true;
  RopeLayout layout = RopeLayout::kHalves;
  double scale = 0;           // of the scores; 0: 1 / sqrt(head_dim)
  PositionScale query_scale;  // of queries, after they turn
  float soft_cap = 0;         // of the scores; 0: none
  bool sinks = false;         // a logit of no key, in each head's softmax
  // What comes out is multiplied by the sigmoid of a gate: q_proj has the query of one head, then
  // its gate, then those of the next (Qwen3-Next).
  bool gated = false;
  // Absent: all keys, unless options ask for blocks; block_tokens 0: all keys whatever they ask
  // for.
  std::optional<MobaShape> moba;
  std::optional<BlockIndexConfig> index;  // attention to the blocks that it chooses
  std::optional<GqaStates> shared;  // of an earlier layer: there are no keys and values of its own
  GqaNames names = {};
};

class GqaAttention {
 public:
  GqaAttention(Builder b, const GqaConfig& c);

  // x [T, input] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

  GqaStates states() const { return states_; }

 private:
  // Queries or keys [T, heads * head_dim], normed and turned; `norm` may be missing.
  Tensor place(Step& s, Tensor x, const std::optional<RmsNorm>& norm,
               const Rotation& rotation) const;
  Tensor normed(Step& s, Tensor x, const RmsNorm& norm) const;
  // Keys, and values unless they are the same [T, kv_heads * head_dim each].
  void keep(Step& s, Tensor kv, const Rotation& rotation) const;
  // Attention of q, made of x -> the shape of q.
  Tensor attend(Step& s, Tensor x, Tensor q, const Rotation& rotation) const;

  AttentionShape shape_;
  int64_t kv_heads_whole_;  // of all ranks
  bool row_norms_, norm_after_turn_, rotary_, gated_, value_is_key_, shares_;
  RopeLayout layout_;
  PositionScale query_scale_;
  MobaShape moba_;
  Linear qkv_;  // queries, their gates if there are any, keys and values
  Linear output_;
  std::optional<RmsNorm> q_norm_, k_norm_, v_norm_;
  Tensor sinks_;
  GqaStates states_;
  StateId key_sums_ = -1;  // with blocks
  std::optional<BlockIndex> index_;
};

}  // namespace banyan
