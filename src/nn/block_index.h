// The index of MiniMax-M3's sparse attention. It keeps a key for every token, shared by all heads,
// and has a query for each head of keys and values. The score of a block of tokens for a head is
// the best score of its keys. Attention reads the row's own block and the best of the others:
//
//   score(t, h, b) = max over the tokens j of block b of q[t, h] . k[j]
//
// Queries and keys are projections of the layer's input, normalised and rotated. Ranks divide the
// queries; each rank keeps all keys.
#pragma once

#include "nn/basic.h"
#include "nn/linear.h"
#include "ops/index.h"

namespace banyan {

struct BlockIndexConfig {
  int64_t dim = 0;           // of a query or key
  int64_t block_tokens = 0;  // of a block
  int64_t top_k = 0;         // blocks that a row attends to, including local ones
  int64_t local_blocks = 1;  // the row's own and those right before it, always taken
  int64_t key_bytes = 0;     // per token, in the cache

  SelectionRule rule() const {
    return {.entry_tokens = block_tokens, .top_k = top_k, .forced_last = local_blocks};
  }
};

class BlockIndex {
 public:
  // For attention with `heads` heads of keys and values.
  BlockIndex(Builder b, const BlockIndexConfig& c, int64_t hidden, int64_t heads, float eps,
             NormWeight norm_weight, RopeLayout layout);

  // Stores the keys of x [T, hidden]. Then attends for q as in `shape`, to the blocks of k and v
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
