// Multi-head latent attention, which caches one latent row per position for all heads. It has two
// forms. The absorbed form applies the heads' key and value matrices to the query and the result.
// The expanded form computes keys and values from the latents.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed. Ops with `spans` compute only
// those rows, ascending runs of rows of the step's spans, and leave the others unwritten.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/rowwise.h"
#include "quant/formats.h"

namespace banyan {

struct LatentShape {
  int64_t heads = 0;
  int64_t rank = 0;  // width of the latent
  int64_t nope_dim = 0, rope_dim = 0, value_dim = 0;
  float scale = 1;
  RopeLayout layout = RopeLayout::kInterleaved;

  int64_t width() const { return rank + rope_dim; }
  int64_t query_dim() const { return nope_dim + rope_dim; }
};

// Stores x [T, rank + rope_dim], with its first `rank` columns normalised and the others rotated
// (unchanged if the rotation is empty), at the rows' positions in the state.
void place_latents(Step& s, Tensor x, Tensor norm, float eps, const Rotation& rotation,
                   const LatentShape& shape, StateId latents);

// For each head of q [T, heads * (nope_dim + rope_dim)]: its first part times the head's `keys`
// [rank, nope_dim], and its second part rotated -> [T, heads * (rank + rope_dim)].
Tensor latent_queries(Step& s, Tensor q, const PackedMatrix& keys, const Rotation& rotation,
                      const LatentShape& shape, const SpanList& spans);

// Attention of these queries over the state's latents, or of each row over those that are selected
// for it -> [T, heads * rank].
Tensor latent_attention(Step& s, Tensor q, StateId latents, const LatentShape& shape,
                        const SpanList& spans, const SelectedKeys& selected = {});

// Each head of x [T, heads * rank] times the head's `values` [value_dim, rank] -> out [T, heads *
// value_dim].
void latent_values(Step& s, Tensor x, const PackedMatrix& values, const LatentShape& shape,
                   const SpanList& spans, Tensor out);

// q [T, heads * (nope_dim + rope_dim)] with the second part of each head rotated -> the same shape.
Tensor expanded_queries(Step& s, Tensor q, const Rotation& rotation, const LatentShape& shape,
                        const SpanList& spans);

// The matrices that expand latents to each head's keys and values.
struct LatentExpansion {
  const PackedMatrix& keys;    // [nope_dim, rank]
  const PackedMatrix& values;  // [value_dim, rank]
};
// Attention of these queries over keys and values expanded from the state's latents, one block at a
// time -> out [T, heads * value_dim].
//
// For n rows after p earlier positions, all p + n latents are expanded, in 2 (p + n) heads rank
// (nope_dim + value_dim) operations. The absorbed form spends the part for n on queries and
// results. Each pair of a row and a visible key then costs 2 heads (nope_dim + rope_dim +
// value_dim) instead of 2 heads (2 rank + rope_dim). With DeepSeek's sizes, 640 instead of 2176
// repays the 262144 of expansion from about 170 rows on.
void expanded_attention(Step& s, Tensor q, StateId latents, const LatentExpansion& expansion,
                        const LatentShape& shape, const SpanList& spans, Tensor out);

}  // namespace banyan
