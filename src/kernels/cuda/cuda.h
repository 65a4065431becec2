// The kernel table of an NVIDIA GPU. The build chooses which file defines it: device/cuda.cu, or
// no_cuda.cpp.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::cuda {

inline constexpr const char* kTableName = "cuda";

struct GpuTable {
  const KernelTable* table = nullptr;
  const char* reason = "";  // why there is no table
};

// Looks for a driver and a GPU of compute capability 9.0 at the first call.
GpuTable gpu_table();

}  // namespace banyan::cuda
