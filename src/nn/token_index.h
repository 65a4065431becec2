// The lightning indexer of DeepSeek's sparse attention (DSA; DeepSeek-AI 2025, arXiv:2512.02556,
// equation 1). It keeps a key of its own for every token. For each row, heads of its own look at
// these, and attention reads the `top_k` tokens that they score highest alone:
//
//   score(t, j) = sum over h of w[t, h] * max(0, q[t, h] . k[j])
//
// Queries are made of what latent attention makes its queries of, keys and the heads' weights of
// the layer's input. Every rank computes all of it, for ranks share the choice.
//
// Keys are kept as the other states of pages are, or as fp8: they, and the queries, then go through
// the Hadamard transform, which spreads what is large in one column over all, and are rounded.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/index.h"

namespace banyan {

struct TokenIndexConfig {
  int64_t heads = 0, dim = 0;  // of the index
  int64_t top_k = 0;           // tokens that a row attends to, at most
  int64_t context_tokens = 0;  // the model's limit
  int64_t key_bytes = 0;       // of a token, as it is kept
  RopeLayout layout = RopeLayout::kHalves;
  bool shared = false;  // it has none of its own, and takes the choice of the last layer that has

  bool operator==(const TokenIndexConfig&) const = default;
};

class TokenIndex {
 public:
  // `hidden` and `query_rank` are the widths of what it is made of.
  TokenIndex(Builder b, const TokenIndexConfig& c, int64_t hidden, int64_t query_rank,
             bool two_forms);

  // Keeps the keys of x [T, hidden], and where some row sees more tokens than it may attend to,
  // chooses those of every row by queries of `latent` [T, query_rank], into the step's `choice`.
  void operator()(Step& s, Tensor x, Tensor latent, const Rotation& rotation) const;

 private:
  Tensor turned(Step& s, Tensor x, const Rotation& rotation) const;

  IndexShape shape_;
  RopeLayout layout_;
  bool rounds_;  // to codes
  Linear query_, key_;
  Tensor norm_, norm_bias_;  // [dim]
  PackedMatrix weights_;     // of the heads; f32, as routers are
  StateId keys_;
};

}  // namespace banyan
