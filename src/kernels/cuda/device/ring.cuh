// A ring of stages in shared memory, which one warpgroup fills and others empty.
//
// A kernel's layout K has kStages of kStageBytes each from the beginning of its shared memory, and
// from kBarriers on two barriers of 8 bytes for each: full and empty.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/device/async_copy.cuh"
#include "kernels/cuda/device/wgmma.cuh"
#include "kernels/cuda/math.h"

namespace banyan::cuda::device {

// As one of its sides walks along it.
template <class K>
struct Ring {
  uint32_t shared, stage = 0, parity = 0;

  __device__ uint32_t at(uint32_t s) const { return shared + s * K::kStageBytes; }
  __device__ uint32_t full(uint32_t s) const { return shared + K::kBarriers + s * 8; }
  __device__ uint32_t empty(uint32_t s) const { return full(K::kStages + s); }
  __device__ uint32_t back(uint32_t count) const {
    return stage >= count ? stage - count : stage + K::kStages - count;
  }
  template <int step = 1>
  __device__ void next() {
    static_assert(K::kStages % step == 0);
    if ((stage += step) >= K::kStages) stage -= K::kStages, parity ^= 1;
  }
  __device__ void wait_full() const { barrier_wait(full(stage), parity); }
  // The calling warp has read stage `s`. Each warp says so itself, since PTX promises a wait for
  // wgmma to the threads that wait, not to the warpgroup.
  __device__ void release(uint32_t s) const {
    if (threadIdx.x % kWarp == 0) barrier_arrive(empty(s));
  }
};

// By one thread, before the others use the ring. `arrivals` fill a stage; `groups` empty it.
template <class K>
__device__ void init_ring(uint32_t shared, int arrivals, int groups) {
  Ring<K> ring{shared};
  for (uint32_t s = 0; s < K::kStages; ++s) {
    barrier_init(ring.full(s), arrivals);
    barrier_init(ring.empty(s), groups * 128 / kWarp);
  }
  fence_barrier_init();
}

// A thread of the warpgroup that fills the ring by copies of 16 bytes or by stores, each thread
// some of a stage. Copies arrive by themselves, so that no thread waits for one stage before it
// begins the next. Whoever multiplies with what they wrote runs fence_shared() before: a fence here
// would wait for every copy under way.
template <class K>
class RingFiller {
 public:
  __device__ explicit RingFiller(uint32_t shared) : ring_{shared} {}

  __device__ const Ring<K>& ring() const { return ring_; }
  // Of the warpgroup.
  __device__ static int thread() { return static_cast<int>(threadIdx.x) - K::kMultipliers; }

  __device__ void wait_empty() const { barrier_wait(ring_.empty(ring_.stage), ring_.parity ^ 1); }
  // The copies of the stage are under way.
  __device__ void filled_stage() {
    barrier_arrive_after_copies(ring_.full(ring_.stage));
    ring_.next();
  }
  // This thread's stores to the stage are done.
  __device__ void stored_stage() {
    barrier_arrive(ring_.full(ring_.stage));
    ring_.next();
  }
  // For callers that arrive at the barrier themselves.
  __device__ void next() { ring_.next(); }
  __device__ void finish() const { wait_for_copies(); }

 private:
  Ring<K> ring_;
};

}  // namespace banyan::cuda::device
