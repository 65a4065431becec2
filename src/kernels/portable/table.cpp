// The portable kernel table: a definition of every kernel.
#include "kernels/place_heads.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {

const KernelTable& table() {
  static const KernelTable kTable = {
      .name = "portable",
      .device = &kHostDevice,
      .gemm_f32 = gemm_f32(),
      .gemm_bf16 = gemm_bf16(),
      .gemm_f16 = gemm_f16(),
      .gemm_int8 = gemm_int8(),
      .gemm_int4 = gemm_int4(),
      .gemm_uint4 = gemm_uint4(),
      .gemm_mxfp4 = gemm_mxfp4(),
      .gemm_fp8 = gemm_fp8(),
      .gemm_q2 = gemm_q2(),
      .gemm_q3 = gemm_q3(),
      .gemm_q4 = gemm_q4(),
      .gemm_q5 = gemm_q5(),
      .gemm_q6 = gemm_q6(),
      .gemm_iq4 = gemm_iq4(),
      .rms_norm = rms_norm,
      .rope_angles = rope_angles,
      .rope = rope,
      .silu_mul = silu_mul,
      .scale = scale,
      .gate_mul = gate_mul,
      .add = add,
      .logit_stats = logit_stats,
      .route = route,
      .sort_experts = sort_experts,
      .combine_experts = combine_experts,
      .copy_rows = copy_rows,
      .add_rows = add_rows,
      .copy_units = copy_units,
      .page_write = page_write,
      .place_heads = place_heads_by<rms_norm, rope, page_write>,
      .page_read = page_read,
      .key_sums = key_sums,
      .block_scores = block_scores,
      .block_maxima = block_maxima,
      .select_keys = select_keys,
      .index_scores = index_scores,
      .hadamard = hadamard,
      .layer_norm = layer_norm,
      .attention = attention,
      .latent_attention = latent_attention,
      .linear_attention = linear_attention,
      .delta_attention = delta_attention,
      .delta_gates = delta_gates,
      .state_space = state_space,
      .state_space_gates = state_space_gates,
      .short_conv = short_conv,
      .draw = draw,
      .resolve_tokens = resolve_tokens,
      .follow_drafts = follow_drafts,
      .pool_keys = pool_keys,
      .pooled_attention = pooled_attention,
  };
  return kTable;
}

}  // namespace banyan::portable
