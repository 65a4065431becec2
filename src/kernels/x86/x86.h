// The kernel tables for x86-64. On other processors kernels/no_x86.cpp replaces them.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/limits.h"

namespace banyan::x86 {

// Use only those that runnable_tables() returns.
extern const KernelTable kAvx2, kAvx512;
extern const LimitProbes kAvx2Limits, kAvx512Limits, kAvx512VnniLimits, kAvx512Bf16Limits,
    kAmxLimits;

// The kernels that an instruction set adds to the previous table: VNNI adds dot products of bytes
// to AVX-512, BF16 adds dot products of bf16 pairs, AMX adds tiles. All other kernels are reused,
// compiled once.
struct ByteProducts {
  GemmKernel int8, int4, uint4, mxfp4;
};
struct PairProducts {
  GemmKernel bf16, fp8;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
  void (*index_scores)(const IndexScoresArgs&) = nullptr;
};
struct TileProducts {
  GemmKernel bf16, int8, int4, uint4, mxfp4, fp8;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
};
extern const ByteProducts kAvx512VnniProducts;
extern const PairProducts kAvx512Bf16Products;
extern const TileProducts kAmxProducts;
KernelTable with_tiles(const char* name, const TileProducts& products);

// The tables that this processor and operating system can run, in ascending order: each requires
// everything that the previous one does.
std::vector<MeasuredTable> runnable_tables();

}  // namespace banyan::x86
