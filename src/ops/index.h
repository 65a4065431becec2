// Indexes with a key of their own for every token. With them, DeepSeek's sparse attention chooses
// the tokens that a row attends to, and MiniMax-M3 chooses blocks of tokens.
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
  int64_t top_k = 0;           // maximum number of keys that a row attends to
  int64_t context_tokens = 0;  // the longest context of a sequence, for which scores need room
};

// Allocates room for `keys_max` keys of each row of the step.
KeyChoice allocate_choice(Step& s, int64_t keys_max);

// Whether some row of the step sees more than `top_k` keys. If none does, every row attends to all
// keys, and nothing is chosen.
bool chooses_keys(const Step& s, int64_t top_k);

// Chooses the keys of every row into the step's `choice`, by queries q [T, heads * dim] over the
// state's keys and by `weights` [T, heads] of the heads.
void choose_keys(Step& s, Tensor q, Tensor weights, StateId keys, const IndexShape& shape);

// Attention as in `shape`, over blocks of the states k and v, of q [T, q_heads * head_dim] -> the
// same shape. The score of a block for a kv head is the best product of the head's query in
// `queries` [T, kv_heads * dim] with the block's index keys.
Tensor indexed_block_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                               Tensor queries, StateId index_keys, const SelectionRule& rule);

// Each group of `dim` columns of x [T, D], a power of two, times the Hadamard matrix -> [T, D].
Tensor hadamard(Step& s, Tensor x, int64_t dim);

}  // namespace banyan
