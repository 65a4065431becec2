// Multi-head latent attention with its projections absorbed: what is kept of a position is one
// latent row for all heads, and the heads' own key and value matrices are applied to the query and
// to the result instead.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>
#include <span>

#include "cache/state_spec.h"
#include "ops/rowwise.h"
#include "quant/formats.h"

namespace banyan {

struct LatentShape {
  int64_t heads = 0;
  int64_t rank = 0;  // of the latent
  int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  float scale = 1;
  RopeLayout layout = RopeLayout::kInterleaved;

  int64_t width() const { return rank + rope_dim; }
  int64_t query_dim() const { return nope_dim + rope_dim; }
};

// x [T, rank + rope_dim] with its first `rank` columns normalised and its others rotated, or left
// as they are where the rotation is empty -> the same shape.
Tensor latent_rows(Step& s, Tensor x, Tensor norm, float eps, const Rotation& rotation,
                   const LatentShape& shape);

// Of each head of q [T, heads * (nope_dim + rope_dim)]: its first part times `keys` [rank,
// nope_dim] of the head, and its second rotated -> [T, heads * (rank + rope_dim)].
Tensor latent_queries(Step& s, Tensor q, std::span<const PackedMatrix> keys,
                      const Rotation& rotation, const LatentShape& shape);

// Attention of those queries over the state's latents -> [T, heads * rank].
Tensor latent_attention(Step& s, Tensor q, StateId latents, const LatentShape& shape);

// Each head of x [T, heads * rank] times `values` [value_dim, rank] of the head
// -> [T, heads * value_dim].
Tensor latent_values(Step& s, Tensor x, std::span<const PackedMatrix> values,
                     const LatentShape& shape);

}  // namespace banyan
