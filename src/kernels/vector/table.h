// A whole kernel table compiled for the instruction set of one vector class.
#pragma once

#include "kernels/place_heads.h"
#include "kernels/portable/portable.h"
#include "kernels/vector/attention_pairs.h"
#include "kernels/vector/delta.h"
#include "kernels/vector/draw.h"
#include "kernels/vector/gemm.h"
#include "kernels/vector/gemm_blocks.h"
#include "kernels/vector/index_scores.h"
#include "kernels/vector/latent_attention_pairs.h"
#include "kernels/vector/moe.h"
#include "kernels/vector/products.h"
#include "kernels/vector/rowwise.h"
#include "kernels/vector/sparse.h"
#include "kernels/vector/state_space.h"
#include "kernels/vector/vector.h"

namespace banyan::simd {

// A constant, so that a table exists before any code of its instruction set has run.
template <FloatVector V>
constexpr KernelTable make_table(const char* name) {
  return {
      .name = name,
      .device = &kHostDevice,
      .gemm_f32 = gemm_kernel<F32Weights<V>>(),
      .gemm_bf16 = gemm_kernel<Bf16Weights<V>>(),
      .gemm_f16 = gemm_kernel<F16Weights<V>>(),
      .gemm_int8 = gemm_kernel<Int8WordWeights<V>>(),
      .gemm_int4 = gemm_kernel<Int4Weights<V, false>>(),
      .gemm_uint4 = gemm_kernel<Int4Weights<V, true>>(),
      .gemm_mxfp4 = gemm_kernel<Mxfp4Weights<V>>(),
      .gemm_fp8 = gemm_kernel<Fp8Weights<V>>(),
      .gemm_q2 = block_kernel<V, kQ2>(),
      .gemm_q3 = block_kernel<V, kQ3>(),
      .gemm_q4 = block_kernel<V, kQ4>(),
      .gemm_q5 = block_kernel<V, kQ5>(),
      .gemm_q6 = block_kernel<V, kQ6>(),
      .gemm_iq4 = block_kernel<V, kIq4>(),
      .rms_norm = rms_norm<V>,
      .rope_angles = portable::rope_angles,  // far angles need libm's range reduction
      .rope = rope<V>,
      .silu_mul = silu_mul<V>,
      .scale = scale<V>,
      .gate_mul = gate_mul<V>,
      .add = add<V>,
      .logit_stats = logit_stats<V>,
      .route = route<V>,
      .sort_experts = portable::sort_experts,
      .combine_experts = combine_experts<V>,
      .copy_rows = portable::copy_rows,
      .add_rows = portable::add_rows,
      .copy_units = portable::copy_units,
      .page_write = page_write<V>,
      .place_heads = place_heads_by<rms_norm<V>, rope<V>, page_write<V>>,
      .page_read = portable::page_read,  // as fast as memory, and little of it
      .key_sums = key_sums<V>,
      .block_scores = block_scores<V>,
      .block_maxima = block_maxima<V>,
      .select_keys = select_keys<V>,
      .index_scores = index_scores<V>,
      .hadamard = portable::hadamard,      // few columns
      .layer_norm = portable::layer_norm,  // one row of 128 columns for each token
      .attention = attention<V>,
      .latent_attention = latent_attention<V>,
      .linear_attention = linear_attention<V>,
      .delta_attention = delta_attention<V>,
      .delta_gates = delta_gates<V>,
      .state_space = state_space<V>,
      .state_space_gates = state_space_gates<V>,
      .short_conv = short_conv<V>,
      .draw = draw<V>,
      .resolve_tokens = portable::resolve_tokens,  // a few hundred bytes
      .follow_drafts = portable::follow_drafts,
      .pool_keys = portable::pool_keys,  // no published model has them
      .pooled_attention = portable::pooled_attention,
  };
}

template <FloatVector V>
constexpr ByteProducts byte_products() {
  return {.int8 = gemm_kernel<Int8Weights<V>>(),
          .int4 = gemm_kernel<Int4Weights<V, false>>(),
          .uint4 = gemm_kernel<Int4Weights<V, true>>(),
          .mxfp4 = gemm_kernel<Mxfp4Weights<V>>(),
          .q2 = block_kernel<V, kQ2>(),
          .q3 = block_kernel<V, kQ3>(),
          .q4 = block_kernel<V, kQ4>(),
          .q5 = block_kernel<V, kQ5>(),
          .q6 = block_kernel<V, kQ6>(),
          .iq4 = block_kernel<V, kIq4>()};
}

template <PairVector V>
constexpr PairProducts pair_products() {
  return {.bf16 = gemm_kernel<Bf16PairWeights<V>>(),
          .fp8 = gemm_kernel<Fp8PairWeights<V>>(),
          .attention = attention_pairs<V>,
          .latent_attention = latent_attention_pairs<V>,
          .index_scores = index_scores_pairs<V>};
}

}  // namespace banyan::simd
