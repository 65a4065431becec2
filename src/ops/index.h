// Indexes with a key of their own for every token: by them DeepSeek's sparse attention chooses the
// tokens that a row looks at, and MiniMax-M3 the blocks of tokens.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/block_attention.h"

namespace banyan {

struct IndexShape {
  int64_t heads = 0, dim = 0;
  int64_t top_k = 0;           // keys that a row looks at, at most
  int64_t context_tokens = 0;  // that a sequence has at most: scores of a row take room for it
};

// Room for `keys_max` keys of each row of the step.
KeyChoice allocate_choice(Step& s, int64_t keys_max);

// Whether some row of the step sees more than `top_k` keys. Where none does, each looks at all that
// it sees, and nothing is chosen.
bool chooses_keys(const Step& s, int64_t top_k);

// Chooses the keys of every row into the step's `choice`: by queries q [T, heads * dim] that look
// at the state's keys, and `weights` [T, heads] of the heads.
void choose_keys(Step& s, Tensor q, Tensor weights, StateId keys, const IndexShape& shape);

// Attention as `shape` says, over blocks of the states k and v, of q [T, q_heads * head_dim] -> the
// same shape. A block is as good for a kv head as the best of its index keys is for the head's own
// query in `queries` [T, kv_heads * dim].
Tensor indexed_block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                               Tensor queries, StateId index_keys, const SelectionRule& rule);

// Each group of `dim` columns of x [T, D], a power of two, times the Hadamard matrix -> [T, D].
Tensor hadamard(Step& s, Tensor x, int64_t dim);

}  // namespace banyan
