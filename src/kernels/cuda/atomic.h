// Additions of integers by threads of any block, whose order changes no result.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace banyan::cuda {

BANYAN_DEVICE inline void add_atomically(int64_t* to, int64_t value) {
#ifdef __CUDA_ARCH__
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
#else
  *to += value;
#endif
}

BANYAN_DEVICE inline void add_atomically(int32_t* to, int32_t value) {
#ifdef __CUDA_ARCH__
  atomicAdd(to, value);
#else
  *to += value;
#endif
}

}  // namespace banyan::cuda
