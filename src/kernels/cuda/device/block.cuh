// A block of threads on a GPU (kernels/cuda/block.h).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/wgmma.cuh"
#include "kernels/cuda/split_fragments.h"

namespace banyan::cuda::device {

// The value with each of its words shuffled.
template <class T, class Shuffle>
__device__ T shuffle_words(T value, const Shuffle& shuffle) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  constexpr int kWords = sizeof(T) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = shuffle(words[i]);
  memcpy(&value, words, sizeof(T));
  return value;
}

// The value of the lane `by` further on, or back; undefined for lanes without one.
template <class T>
__device__ T shuffle_down(T value, int by) {
  return shuffle_words(value, [=](uint32_t w) { return __shfl_down_sync(0xffffffffu, w, by); });
}
template <class T>
__device__ T shuffle_up(T value, int by) {
  return shuffle_words(value, [=](uint32_t w) { return __shfl_up_sync(0xffffffffu, w, by); });
}
template <class T>
__device__ T of_first_lane(T value) {
  return shuffle_words(value, [](uint32_t w) { return __shfl_sync(0xffffffffu, w, 0); });
}

// That of a warp for its first lane, in the order of tree_reduce.
template <class T, class Combine>
__device__ T combine_lanes(T value, const Combine& combine) {
#pragma unroll
  for (int half = kWarp / 2; half > 0; half /= 2) {
    value = combine(value, shuffle_down(value, half));
  }
  return value;
}

// The compiler must not move what makes these values past here.
template <int n>
__device__ void pin(Sums<n>& sums) {
#pragma unroll
  for (float& value : sums.at) asm volatile("" : "+f"(value)::"memory");
}
template <int steps>
__device__ void pin(SplitFragments<steps>& a) {
#pragma unroll
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      asm volatile("" : "+r"(a.high.at[step][r]), "+r"(a.low.at[step][r])::"memory");
    }
  }
}

struct Products {
  template <int n, bool transposed, class SumsOf, class FragmentsOf>
  __device__ void add(SumsOf& sums, const FragmentsOf& a, const OperandTiles& b, int step,
                      bool keeps) const {
    auto bytes = static_cast<uint32_t>(b.tile_bytes());
    uint32_t at = shared_address(b.at);
    uint64_t of_step = transposed
                           ? transposed_descriptor(at, bytes) + step * kTransposedStep
                           : tile_descriptor(at + step / 4 * bytes) + step % 4 * kDescriptorStep;
    Wgmma<n, BFloat16>::template registers<transposed>(sums[0].at, a(0), of_step, keeps ? 1 : 0);
  }
};

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

  // The barrier before the next phase keeps its values until all threads have read them.
  template <class Body, class Combine>
  __device__ auto reduce(const Body& body, const Combine& combine) {
    using T = decltype(body(0));
    __shared__ __align__(16) unsigned char bytes[kWarps * sizeof(T)];
    auto* of_warps = reinterpret_cast<T*>(bytes);
    __syncthreads();
    T value = combine_lanes(body(static_cast<int>(threadIdx.x)), combine);
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = of_warps[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) value = combine(value, of_warps[warp]);
    return value;
  }

  template <class Body, class Combine>
  __device__ auto reduce_warps(const Body& body, const Combine& combine) {
    PerThread<decltype(body(0))> value;
    value[0] = of_first_lane(combine_lanes(body(static_cast<int>(threadIdx.x)), combine));
    return value;
  }

  template <class Body, class Combine>
  __device__ auto reduce_lanes(int lanes, const Body& body, const Combine& combine) {
    PerThread<decltype(body(0))> value;
    value[0] = body(static_cast<int>(threadIdx.x));
    for (int by = 1; by < lanes; by *= 2) {
      value[0] = combine(value[0], shuffle_words(value[0], [by](uint32_t word) {
                           return __shfl_xor_sync(0xffffffffu, word, by);
                         }));
    }
    return value;
  }

  template <class Body>
  __device__ auto sum_quads(const Body& body) {
    float value = body(static_cast<int>(threadIdx.x));
    float pair = value + __shfl_xor_sync(0xffffffffu, value, 1);
    PerThread<float> sum;
    sum[0] = pair + __shfl_xor_sync(0xffffffffu, pair, 2);
    return sum;
  }

  template <class Body>
  __device__ void alone(const Body& body) {
    body(static_cast<int>(threadIdx.x));
  }

  template <class Body, class... Values>
  __device__ void multiply(const Body& body, Values&... values) {
    static_assert(Threads == kWarpgroup);
    fence_shared();
    __syncthreads();
    (pin(values[0]), ...);
    wgmma_fence();
    const Products products;
    body(products);
    wgmma_commit();
    wgmma_wait();
    (pin(values[0]), ...);
    __syncthreads();
  }

  __device__ void begin_fetching() const {
    if (threadIdx.x == 0) {
      barrier_init(fetched(), 1);
      fence_barrier_init();
    }
    __syncthreads();
  }
  __device__ void fetch(std::byte* to, const std::byte* from, int64_t bytes) const {
    if (threadIdx.x > 0) return;
    auto count = static_cast<uint32_t>(bytes);
    barrier_arrive_expecting(fetched(), count);
    copy_bulk(shared_address(to), from, count, fetched());
  }
  __device__ void wait_for_fetched() {
    barrier_wait(fetched(), fetch_parity_);
    fetch_parity_ ^= 1;
    __syncthreads();
  }

  template <class T>
  __device__ void exclusive_sums(T* values) {
    __shared__ T of_warps[kWarps];
    int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    __syncthreads();
    T own = values[threadIdx.x], sum = own;
#pragma unroll
    for (int by = 1; by < kWarp; by *= 2) {
      T before = shuffle_up(sum, by);
      if (lane >= by) sum += before;
    }
    if (lane == kWarp - 1) of_warps[warp] = sum;
    __syncthreads();
    sum -= own;
#pragma unroll
    for (int before = 0; before < kWarps - 1; ++before) {
      if (before < warp) sum += of_warps[before];
    }
    values[threadIdx.x] = sum;
    __syncthreads();
  }

 private:
  static constexpr int kWarps = Threads / kWarp;

  __device__ static uint32_t fetched() {
    __shared__ uint64_t barrier;
    return shared_address(&barrier);
  }

  uint32_t fetch_parity_ = 0;
  std::byte* scratch_;
};

}  // namespace banyan::cuda::device
