// The tables for x86-64 processors. kernels/no_x86.cpp stands in on others.
#pragma once

#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/limits.h"

namespace banyan::x86 {

// To be used only where runnable_tables() has them.
extern const KernelTable kAvx2, kAvx512, kAvx512Bf16;
extern const LimitProbes kAvx2Limits, kAvx512Limits, kAvx512Bf16Limits, kAmxLimits;

// What a processor with tiles computes with them. Everything else is kAvx512Bf16's, compiled once.
struct TileProducts {
  GemmKernel bf16, int8, int4, uint4, mxfp4, fp8;
  void (*attention)(const AttentionArgs&) = nullptr;
  void (*latent_attention)(const LatentAttentionArgs&) = nullptr;
};
extern const TileProducts kAmxProducts;
KernelTable with_tiles(const char* name, const TileProducts& products);

// The tables that this processor and operating system can run, slowest first.
std::vector<MeasuredTable> runnable_tables();

}  // namespace banyan::x86
