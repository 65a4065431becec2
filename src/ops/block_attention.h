// Attention of each row to its own block of keys and to the few others that score highest.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include "ops/attention.h"
#include "ops/sparse.h"

namespace banyan {

struct BlockChoice {
  SelectionRule rule = {};
  bool decode = true;  // false: positions from prompt_tokens on attend to all keys

  // Positions below this attend to all earlier ones in any case.
  int64_t dense_tokens() const { return rule.entry_tokens * rule.top_k; }
};

// Computes the scores of those rows of `spans` that are in the block of rows.
using ScoreBlocks = FunctionRef<void(const SpanList& spans, const ScoreBlock& block)>;

// Attention as in `shape`, over the selected blocks of the states, of q [T, q_heads * head_dim] ->
// the same shape. The queries of a kv head share its choice.
Tensor block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                       const BlockChoice& choice, ScoreBlocks score);

}  // namespace banyan
