// Mixture of block attention (MoBA): each row attends to its own block of keys and to the few
// earlier blocks whose mean key is most similar to the mean of its queries.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include "ops/block_attention.h"

namespace banyan {

struct MobaShape {
  int64_t block_tokens = 0;  // 0: every row attends to all keys
  int64_t top_k = 0;         // number of blocks, including the row's own
  bool decode = true;        // false: positions from prompt_tokens on attend to all keys
  bool by_option = false;    // sizes from options instead of the model's own

  // Positions below this attend to all earlier ones in any case.
  int64_t dense_tokens() const { return block_tokens * top_k; }
  SelectionRule rule() const {
    return {.entry_tokens = block_tokens, .top_k = top_k, .forced_last = 1};
  }
};

// Sums the keys of the blocks that end in the step's spans. Call it after the keys are written.
void write_key_sums(Step& s, StateId keys, StateId sums, const MobaShape& moba);

// Attention as in `shape`, over the selected blocks of the states, of q [T, q_heads * head_dim] ->
// the same shape. The queries of a kv head choose together.
Tensor moba_attention(Step& s, Tensor q, StateId k, StateId v, StateId sums,
                      const AttentionShape& shape, const MobaShape& moba);

}  // namespace banyan
