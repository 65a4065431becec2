// Kernels that replace those of a table where the processor has more products than its vector class
// needs. All other kernels are reused, compiled once.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::simd {

// With dot products of bytes (VNNI).
struct ByteProducts {
  GemmKernel int8, int4, uint4, mxfp4;
  GemmKernel q2, q3, q4, q5, q6, iq4;
};

// With dot products of bf16 pairs.
struct PairProducts {
  GemmKernel bf16, fp8;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
  void (*index_scores)(const IndexScoresArgs&) = nullptr;
};

}  // namespace banyan::simd
