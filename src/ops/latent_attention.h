// Multi-head latent attention: what is kept of a position is one latent row for all heads. It has
// two forms. Absorbed, the heads' own key and value matrices are applied to the query and to the
// result instead of the latents; expanded, they make keys and values of the latents again.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs. Those that take `spans` compute their
// rows alone, runs of rows of the step's spans in ascending order, and leave the others unwritten.
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
Tensor latent_queries(Step& s, Tensor q, const PackedMatrix& keys, const Rotation& rotation,
                      const LatentShape& shape, const SpanList& spans);

// Attention of those queries over the state's latents -> [T, heads * rank].
Tensor latent_attention(Step& s, Tensor q, StateId latents, const LatentShape& shape,
                        const SpanList& spans);

// Each head of x [T, heads * rank] times `values` [value_dim, rank] of the head
// -> out [T, heads * value_dim].
void latent_values(Step& s, Tensor x, const PackedMatrix& values, const LatentShape& shape,
                   const SpanList& spans, Tensor out);

// q [T, heads * (nope_dim + rope_dim)] with the second part of each head rotated -> the same shape.
Tensor expanded_queries(Step& s, Tensor q, const Rotation& rotation, const LatentShape& shape,
                        const SpanList& spans);

// What makes keys and values of latents, of each head.
struct LatentExpansion {
  const PackedMatrix& keys;    // [nope_dim, rank]
  const PackedMatrix& values;  // [value_dim, rank]
};
// Attention of those queries over keys and values that are made of the state's latents, as many at
// a time as one block of them has -> out [T, heads * value_dim].
//
// For n rows after p earlier positions the latents of all p + n are expanded:
// 2 (p + n) heads rank (nope_dim + value_dim) operations, of which the part for n is what the
// absorbed form takes for queries and results. A row and a key that it sees then cost
// 2 heads (nope_dim + rope_dim + value_dim) in place of 2 heads (2 rank + rope_dim): with the
// sizes of DeepSeek 640 in place of 2176, which pays for 262144 of expansion from some 170 rows on.
void expanded_attention(Step& s, Tensor q, StateId latents, const LatentExpansion& expansion,
                        const LatentShape& shape, const SpanList& spans, Tensor out);

}  // namespace banyan
