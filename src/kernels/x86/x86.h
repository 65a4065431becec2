// The tables for x86-64 processors. kernels/no_x86.cpp stands in on others.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/limits.h"

namespace banyan::x86 {

// To be used only where runnable_tables() has them.
extern const KernelTable kAvx2, kAvx512;
extern const LimitProbes kAvx2Limits, kAvx512Limits, kAvx512VnniLimits, kAvx512Bf16Limits,
    kAmxLimits;

// What an instruction set computes otherwise than the table before it, whose other kernels it
// takes as they are, compiled once: VNNI adds products of bytes to AVX-512, BF16 those of pairs of
// bf16 to that, AMX tiles to that.
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

// The tables that this processor and operating system can run; each needs what the one before it
// does, and more.
std::vector<MeasuredTable> runnable_tables();

}  // namespace banyan::x86
