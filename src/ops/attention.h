// Paged keys and values: writing them and attending to them.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/step.h"

namespace banyan {

// Stores x [T, heads * width] at the rows' positions in a paged state, whose reach says which of
// the batch's page tables leads there.
void write_pages(Step& s, Tensor x, StateId state);

struct AttentionShape {
  int64_t q_heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
  int64_t window_tokens = 0;     // 0: all earlier positions
  int64_t chunk_tokens = 0;      // not 0: those of the row's chunk, cut at absolute multiples
  float soft_cap = 0;            // of the scores; 0: none
  const float* sinks = nullptr;  // [q_heads] or null: a logit of no key, in each head's softmax
};
// Causal attention of q [T, q_heads * head_dim] over what the states hold -> the same shape. States
// of kWindow reach keep the very window, or chunk, of `shape`.
Tensor attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape);

}  // namespace banyan
