// A block of threads on a card (kernels/cuda/block.h).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block.h"

namespace banyan::cuda::device {

// The value of the lane `half` further on; undefined for lanes without one.
template <class T>
__device__ T shuffle_down(T value, int half) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  constexpr int kWords = sizeof(T) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_down_sync(0xffffffffu, words[i], half);
  memcpy(&value, words, sizeof(T));
  return value;
}

template <int Threads>
class Block {
 public:
  static constexpr int kThreads = Threads;

  template <class T>
  class PerThread {
   public:
    __device__ T& operator[](int) { return value_; }

   private:
    T value_ = {};
  };

  __device__ Block(std::byte* scratch, size_t scratch_bytes)
      : scratch_(scratch + blockIdx.x * scratch_bytes) {}

  __device__ int64_t index() const { return blockIdx.x; }
  __device__ int64_t count() const { return gridDim.x; }
  template <class T>
  __device__ T* shared() const {
    extern __shared__ __align__(1024) unsigned char bytes[];
    return reinterpret_cast<T*>(bytes);
  }
  __device__ std::byte* scratch() const { return scratch_; }

  template <class Body>
  __device__ void each(const Body& body) {
    __syncthreads();
    body(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  template <class Body>
  __device__ void one(const Body& body) {
    each([&](int thread) {
      if (thread == 0) body();
    });
  }

  template <class Body, class Combine>
  __device__ auto reduce(const Body& body, const Combine& combine) {
    using T = decltype(body(0));
    constexpr int kWarps = Threads / kWarp;
    __shared__ __align__(16) unsigned char bytes[kWarps * sizeof(T)];
    auto* of_warps = reinterpret_cast<T*>(bytes);
    __syncthreads();
    T value = body(static_cast<int>(threadIdx.x));
#pragma unroll
    for (int half = kWarp / 2; half > 0; half /= 2) {
      value = combine(value, shuffle_down(value, half));
    }
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = of_warps[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) value = combine(value, of_warps[warp]);
    __syncthreads();
    return value;
  }

 private:
  std::byte* scratch_;
};

}  // namespace banyan::cuda::device
