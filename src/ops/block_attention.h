// Attention of each row to its own block of keys and to the few others that score highest.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include "ops/attention.h"
#include "ops/sparse.h"

namespace banyan {

struct BlockChoice {
  SelectionRule rule = {};
  bool decode = true;  // false: positions from prompt_tokens on look at all keys

  // Positions below look at all earlier ones anyway.
  int64_t dense_tokens() const { return rule.entry_tokens * rule.top_k; }
};

// Fills the scores of those rows of `spans` that the block is for.
using ScoreBlocks = FunctionRef<void(const SpanList& spans, const ScoreBlock& block)>;

// Attention as `shape` says, over the selected blocks of the states, of q [T, q_heads * head_dim]
// -> the same shape. Queries of a kv head share their choice.
Tensor block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                       const BlockChoice& choice, ScoreBlocks score);

}  // namespace banyan
