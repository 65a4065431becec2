// The index of MiniMax-M3's sparse attention. It keeps a key of its own for every token, which all
// heads share, and has a query for each head of keys and values. A block of tokens is as good for a
// head as the best of its keys; attention reads the row's own blocks and the best of the others:
//
//   score(t, h, b) = max over the tokens j of block b of q[t, h] . k[j]
//
// Both are made of the layer's input, normed and turned. Ranks divide the queries; each keeps all
// keys.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/index.h"

namespace banyan {

struct BlockIndexConfig {
  int64_t dim = 0;           // of a query or key
  int64_t block_tokens = 0;  // of a block
  int64_t top_k = 0;         // blocks that a row looks at, local ones among them
  int64_t local_blocks = 1;  // the row's own and those right before it, taken without a score
  int64_t key_bytes = 0;     // of a token, as it is kept

  SelectionRule rule() const {
    return {.entry_tokens = block_tokens, .top_k = top_k, .forced_last = local_blocks};
  }
};

class BlockIndex {
 public:
  // For attention with `heads` heads of keys and values.
  BlockIndex(Builder b, const BlockIndexConfig& c, int64_t hidden, int64_t heads, float eps,
             NormWeight norm_weight, RopeLayout layout);

  // Keeps the keys of x [T, hidden], and attends for q as `shape` says, to the blocks of k and v
  // that the queries of x choose -> the shape of q.
  Tensor operator()(Step& s, Tensor x, const Rotation& rotation, Tensor q, StateId k, StateId v,
                    const AttentionShape& shape) const;

 private:
  SelectionRule rule_;
  int64_t dim_;
  RopeLayout layout_;
  Linear input_;  // queries, then the key
  RmsNorm query_norm_, key_norm_;
  StateId keys_;
};

}  // namespace banyan
