// Native sparse attention (NSA; Yuan et al. 2025, arXiv:2502.11089): attention to pooled keys, and
// to the blocks of keys that receive most of its weight.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include "ops/attention.h"
#include "ops/sparse.h"

namespace banyan {

struct NsaShape {
  int64_t pool_tokens = 32, stride = 16;  // width of a pooled key, and distance to the next
  int64_t block_tokens = 64;              // of a selected block
  int64_t top_k = 16;                     // number of blocks, including those always taken
  int64_t first_blocks = 1, last_blocks = 2;

  SelectionRule rule() const {
    return {.entry_tokens = block_tokens,
            .top_k = top_k,
            .forced_first = first_blocks,
            .forced_last = last_blocks};
  }
};

// How keys or values are pooled: with a weight for each pooled position and column.
struct KeyPooling {
  Tensor weights, bias;  // [pool_tokens, width], [width]
};

// Pools the keys whose entries end in the step's spans. Call it after the keys are written.
void pool_keys(Step& s, StateId keys, StateId pooled, const KeyPooling& pooling,
               const NsaShape& shape);

// Attention of q [T, q_heads * head_dim] to pooled keys -> the same shape, and the blocks that it
// selects.
struct PooledAttention {
  Tensor out;
  SelectedKeys selected;
};
PooledAttention pooled_attention(Step& s, Tensor q, StateId keys, StateId values,
                                 const AttentionShape& attention, const NsaShape& shape);

// Attention to the selected keys of the states -> the shape of q.
Tensor selected_attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                          const SelectedKeys& selected);

}  // namespace banyan
