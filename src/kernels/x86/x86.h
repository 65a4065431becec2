// The kernel tables for x86-64. On other processors kernels/no_x86.cpp replaces them.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/limits.h"
#include "kernels/vector/products.h"

namespace banyan::simd {

// Use only those that runnable_tables() returns.
extern const KernelTable kAvx2, kAvx512;
extern const LimitProbes kAvx2Limits, kAvx512Limits, kAvx512VnniLimits, kAvx512Bf16Limits,
    kAmxLimits;

// What each instruction set adds to the table before it: VNNI to AVX-512, BF16 to that, AMX to
// both.
struct TileProducts {
  GemmKernel bf16, int8, int4, uint4, mxfp4, fp8;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
};
extern const ByteProducts kAvx512VnniProducts;
extern const PairProducts kAvx512Bf16Products;
extern const TileProducts kAmxProducts;
KernelTable with_tiles(const KernelTable& avx512_bf16, const char* name,
                       const TileProducts& products);

// The tables that this processor and operating system can run, in ascending order: each requires
// everything that the previous one does.
std::vector<MeasuredTable> runnable_tables();

// The name of the last table that could run here but was not compiled (BANYAN_NATIVE on another
// machine); null if none is missing.
const char* table_left_out();

}  // namespace banyan::simd
