// Paged keys and values: writing them, and attention over them.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/rowwise.h"
#include "ops/step.h"

namespace banyan {

// Stores x [T, heads * width] at the rows' positions in a paged state; the state's reach selects
// the batch's page table.
void write_pages(Step& s, Tensor x, StateId state);

// Heads of queries, keys and values, [T, heads * head_dim] each. Keys and values may be empty.
struct Heads {
  Tensor q, k, v;
};
// What happens to them on the way from their product to attention.
struct HeadForm {
  int64_t head_dim = 0;
  Tensor q_weight, k_weight, v_weight;  // [head_dim], of the norms of each head; empty: none
  float eps = 0;                        // of these
  bool norm_after_rope = false;         // values do not turn
  bool rotary = true;
  RopeLayout layout = RopeLayout::kHalves;
};
// Norms and rotates heads, and stores keys and values at the rows' positions in their states ->
// queries, [T, heads * head_dim].
Tensor place_heads(Step& s, const Heads& heads, const HeadForm& form, const Rotation& rotation,
                   StateId keys, StateId values);

struct AttentionShape {
  int64_t q_heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
  int64_t window_tokens = 0;     // 0: all earlier positions
  int64_t chunk_tokens = 0;      // not 0: only the row's chunk, split at absolute multiples
  float soft_cap = 0;            // applied to scores; 0: none
  const float* sinks = nullptr;  // [q_heads] or null: an extra logit in each head's softmax
};
// The arguments of one launch; `out` has the shape of q.
AttentionArgs attention_args(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape,
                             Tensor out);
// Causal attention of q [T, q_heads * head_dim] over the contents of the states -> the same shape.
// States of kWindow reach must have the window, or chunk, of `shape`.
Tensor attention(Step& s, Tensor q, StateId k, StateId v, const AttentionShape& shape);

}  // namespace banyan
