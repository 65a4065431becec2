// Pairs of bf16 or f16 in a register, the first of them in its low half.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/fragment_gemm.h"
#include "kernels/cuda/rounded_rows.h"
#include "tensor/float_types.h"

namespace banyan::cuda::device {

// As from_float rounds, but that one NaN stands for all.
template <class T>
__device__ uint32_t round_pair(float low, float high) {
  if constexpr (std::is_same_v<T, BFloat16>) return rounded_pair(low, high);
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Of bf16.
__device__ inline uint32_t multiply_pairs(uint32_t x, uint32_t y) {
  uint32_t products;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(products) : "r"(x), "r"(y));
  return products;
}

// Codes `first` and first + 1 of four of fp8, exactly.
template <int first>
__device__ uint32_t pair_of_fp8(uint32_t codes) {
  constexpr uint32_t kTwoTo120 = 0x7b807b80u;
  return multiply_pairs(shifted_fp8<first>(codes), kTwoTo120);
}

// Of four codes of a quantised state times their scale (kernels/state_rows.h), rounded to bf16.
template <class S>
__device__ uint2 pairs_of_codes(uint32_t codes, float scale);

template <>
__device__ inline uint2 pairs_of_codes<int8_t>(uint32_t codes, float scale) {
  constexpr float kShift = 0x1.0001p23f;  // 2^23, which has bytes as its last bits, and 128
  uint32_t positive = codes ^ 0x80808080u;
  float x[4];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) {
    x[i] = (__uint_as_float(__byte_perm(positive, 0x4b000000u, 0x7440 + i)) - kShift) * scale;
  }
  return {round_pair<BFloat16>(x[0], x[1]), round_pair<BFloat16>(x[2], x[3])};
}

// Scales are powers of two: nothing is rounded.
template <>
__device__ inline uint2 pairs_of_codes<Float8E4M3>(uint32_t codes, float scale) {
  uint32_t scales = __byte_perm(__float_as_uint(scale), 0, 0x3232);
  return {multiply_pairs(pair_of_fp8<0>(codes), scales),
          multiply_pairs(pair_of_fp8<2>(codes), scales)};
}

}  // namespace banyan::cuda::device
