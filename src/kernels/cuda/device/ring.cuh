// A ring of stages in shared memory, which one warp fills and warpgroups empty.
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
  __device__ void next() {
    if (++stage == K::kStages) stage = 0, parity ^= 1;
  }
  __device__ void wait_full() const { barrier_wait(full(stage), parity); }
  // The calling warp has read stage `s`. Each warp says so itself, since PTX promises a wait for
  // wgmma to the threads that wait, not to the warpgroup.
  __device__ void release(uint32_t s) const {
    if (threadIdx.x % kWarp == 0) barrier_arrive(empty(s));
  }
};

// By one thread, before the others use the ring. `extra` of the fetching warp's arrivals fill a
// stage in addition to those of its lanes.
template <class K>
__device__ void init_ring(uint32_t shared, int extra, int groups) {
  Ring<K> ring{shared};
  for (uint32_t s = 0; s < K::kStages; ++s) {
    barrier_init(ring.full(s), kWarp + extra);
    barrier_init(ring.empty(s), groups * 128 / kWarp);
  }
  fence_barrier_init();
}

// A thread of the warp that fills the ring by copies of 16 bytes. A stage is handed over once the
// copies of the next kLag stages are under way: so long one takes.
template <class K>
class RingFiller {
 public:
  static constexpr int kLag = K::kStages / 2;

  __device__ explicit RingFiller(uint32_t shared) : ring_{shared} {}

  __device__ const Ring<K>& ring() const { return ring_; }
  __device__ int64_t filled() const { return filled_; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWarp); }

  __device__ void wait_empty() const { barrier_wait(ring_.empty(ring_.stage), ring_.parity ^ 1); }
  // The copies of the stage are under way.
  __device__ void filled_stage() {
    commit_copies();
    if (filled_ >= kLag) {
      wait_for_copies<kLag>();
      fence_shared();
      barrier_arrive(ring_.full(ring_.back(kLag)));
    }
    ++filled_;
    ring_.next();
  }
  __device__ void finish() {
    wait_for_copies<0>();
    fence_shared();
    for (auto lag = static_cast<uint32_t>(least(filled_, kLag)); lag > 0; --lag) {
      barrier_arrive(ring_.full(ring_.back(lag)));
    }
  }

 private:
  Ring<K> ring_;
  int64_t filled_ = 0;
};

}  // namespace banyan::cuda::device
