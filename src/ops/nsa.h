// Native sparse attention (NSA; Yuan et al. 2025, arXiv:2502.11089): attention to pooled keys, and
// to the blocks of keys that it falls on most.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include "ops/attention.h"
#include "ops/sparse.h"

namespace banyan {

struct NsaShape {
  int64_t pool_tokens = 32, stride = 16;  // of a pooled key, and from one to the next
  int64_t block_tokens = 64;              // of a selected block
  int64_t top_k = 16;                     // blocks, those that are always taken among them
  int64_t first_blocks = 1, last_blocks = 2;

  SelectionRule rule() const {
    return {.entry_tokens = block_tokens,
            .top_k = top_k,
            .forced_first = first_blocks,
            .forced_last = last_blocks};
  }
};

// How keys, or values, are pooled: by a weight for each of the pooled positions and each column.
struct Pooling {
  Tensor weights, bias;  // [pool_tokens, width], [width]
};

// Pools the keys whose entries end in the step's spans, after the keys are written.
void pool_keys(Step& s, StateId keys, StateId pooled, const Pooling& pooling,
               const NsaShape& shape);

// Attention of q [T, q_heads * head_dim] to pooled keys -> the same shape, and the keys that it
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
