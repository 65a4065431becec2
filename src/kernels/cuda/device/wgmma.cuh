// wgmma with its fences, and where the fragments of a warpgroup lie.
#pragma once

#include <cstdint>

#include "kernels/cuda/shared_layout.h"

namespace banyan {
struct BFloat16;
struct Float16;
}  // namespace banyan

namespace banyan::cuda::device {

// d = a b^T + (keep ? d : 0) for a [64, 16] and b [n, 16] of T; d holds n / 2 values a thread.
template <int n, class T>
struct Wgmma;

// The same of integers of 8 bits, for a [64, 32] and b [n, 32]; exact.
template <int n>
struct IntegerWgmma;

#include "kernels/cuda/device/wgmma_forms.cuh"

__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all groups but the last `pending` are complete.
template <int pending = 0>
__device__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// The compiler must not move reads of the results before the wait.
template <int pending = 0, int count>
__device__ void wgmma_wait_for(float (&d)[count]) {
  wgmma_wait<pending>();
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int count>
__device__ void wgmma_wait_for(int32_t (&d)[count]) {
  wgmma_wait<0>();
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(d[i])::"memory");
}
// A warpgroup takes registers, `count` for each thread, that another one has released.
template <int count>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count>
__device__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
// Plain stores to shared memory become visible to the tensor cores.
__device__ inline void fence_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The value of the warp's first thread. The compiler keeps it, and descriptors made of it, in
// uniform registers.
__device__ inline int of_first_lane(int value) {
  return __shfl_sync(0xffffffffu, value, 0);
}

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Row and column in [64, n] of accumulator i of this thread.
__device__ inline int accumulator_row(int i) {
  return static_cast<int>(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4) + (i / 2 % 2) * 8;
}
__device__ inline int accumulator_column(int i) {
  return i / 4 * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

}  // namespace banyan::cuda::device
