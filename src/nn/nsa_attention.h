// Native sparse attention (NSA; Yuan et al. 2025, arXiv:2502.11089). Three attentions with keys and
// values of their own, each multiplied by the sigmoid of a gate for each head, and added:
//
//   compressed: to pooled keys, one for every `stride` positions, without rotation;
//   selected:   to the blocks of keys that the compressed one falls on most;
//   window:     to the last `window_tokens` positions.
//
// A pooled key is linear in the keys of its positions, with a weight for each position and column.
// These keys are kept only as long as a pooled one may need them. Ranks divide the heads of keys
// and values.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/nsa.h"

namespace banyan {

struct NsaConfig {
  int64_t hidden = 0;
  int64_t q_heads = 0, kv_heads = 0, head_dim = 0;
  NsaShape shape;
  int64_t window_tokens = 512;
};

class NsaAttention {
 public:
  NsaAttention(Builder b, const NsaConfig& c);

  // x [T, hidden] -> [T, hidden]
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation) const;

 private:
  struct KeysAndValues {
    StateId keys, values;
  };
  KeysAndValues states(Builder b, std::string_view branch, const StateSpec& spec) const;

  NsaShape nsa_;
  AttentionShape shape_, window_shape_;
  Linear input_;  // queries; keys and values of each branch; gates of each branch
  Linear output_;
  KeyPooling key_pooling_, value_pooling_;
  KeysAndValues raw_, pooled_, selected_, window_;  // raw: what is pooled
};

}  // namespace banyan
