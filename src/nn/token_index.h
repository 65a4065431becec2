// The lightning indexer of DeepSeek's sparse attention (DSA; DeepSeek-AI 2025, arXiv:2512.02556,
// equation 1). It keeps a key of its own for every token. For each row, heads of its own score
// these keys, and attention reads only the `top_k` tokens with the highest scores:
//
//   score(t, j) = sum over h of w[t, h] * max(0, q[t, h] . k[j])
//
// Queries are computed from the same input as those of latent attention, keys and the heads'
// weights from the layer's input. Every rank computes all of it, since ranks share the choice.
//
// Keys are stored like other states in pages, or as fp8. For fp8, keys and queries first go through
// the Hadamard transform, which spreads large values over all columns, and are then rounded.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/index.h"

namespace banyan {

struct TokenIndexConfig {
  int64_t heads = 0, dim = 0;  // of the index
  int64_t top_k = 0;           // maximum number of tokens that a row attends to
  int64_t context_tokens = 0;  // the model's limit
  int64_t key_bytes = 0;       // per token, in the cache
  RopeLayout layout = RopeLayout::kHalves;
  bool shared = false;  // no index of its own: uses the choice of the last layer that has one

  bool operator==(const TokenIndexConfig&) const = default;
};

class TokenIndex {
 public:
  // `hidden` and `query_rank` are the widths of its inputs.
  TokenIndex(Builder b, const TokenIndexConfig& c, int64_t hidden, int64_t query_rank,
             bool two_forms);

  // Stores the keys of x [T, hidden]. If some row sees more tokens than `top_k`, chooses the tokens
  // of every row, with queries from `latent` [T, query_rank], into the step's `choice`.
  void operator()(Step& s, Tensor x, Tensor latent, const Rotation& rotation) const;

 private:
  Tensor rotated(Step& s, Tensor x, const Rotation& rotation) const;

  IndexShape shape_;
  RopeLayout layout_;
  bool rounds_;  // stores codes
  Linear query_, key_;
  Tensor norm_, norm_bias_;  // [dim]
  PackedMatrix weights_;     // head weights; f32, like routers
  StateId keys_;
};

}  // namespace banyan
