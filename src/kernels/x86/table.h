// A whole kernel table compiled for the instruction set of one vector class.
#pragma once

#include "kernels/portable/portable.h"
#include "kernels/x86/attention.h"
#include "kernels/x86/gemm.h"
#include "kernels/x86/rowwise.h"

namespace banyan::x86 {

// A constant: a table is there before any code of its instruction set has run.
template <class V>
constexpr KernelTable make_table(const char* name) {
  return {
      .name = name,
      .gemm_f32 = gemm_kernel<V, float>(),
      .gemm_bf16 = gemm_kernel<V, BFloat16>(),
      .gemm_f16 = gemm_kernel<V, Float16>(),
      .rms_norm = rms_norm<V>,
      .rope_angles = portable::rope_angles,  // far angles need libm's range reduction
      .rope = rope<V>,
      .silu_mul = silu_mul<V>,
      .sigmoid_mul = sigmoid_mul<V>,
      .add = add<V>,
      .logit_stats = logit_stats<V>,
      .page_write = page_write<V>,
      .attention = attention<V>,
      .linear_attention = portable::linear_attention,
  };
}

}  // namespace banyan::x86
