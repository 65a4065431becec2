// Copies to shared memory that threads do not wait for, and the barriers in shared memory that say
// when they have arrived. Addresses are those of the shared state space.
#pragma once

#include <cstdint>

#include "kernels/cuda/tensor_map.h"

namespace banyan::cuda::device {

// A phase of a barrier ends when `arrivals` threads have arrived and all expected bytes too.
__device__ inline void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Other threads, copies and blocks of the cluster see the barriers.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// For `count` threads.
__device__ inline void barrier_arrive_for(uint32_t barrier, int count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count)
               : "memory");
}
__device__ inline void barrier_arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Until the phase of this parity has ended; the one before the first has parity 1.
__device__ inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// `bytes` that follow each other, a multiple of 16 at addresses that are one, too.
__device__ inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier)
      : "memory");
}

// How L2 keeps what a copy reads: what is read once should leave before all else, or the weights of
// a layer drive out activations, keys and the code of kernels.
__device__ inline uint64_t cache_policy(bool read_once) {
  uint64_t once, again;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(again));
  return read_once ? once : again;
}
__device__ inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier,
                                 uint64_t policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "l"(policy)
      : "memory");
}

// To the same place in the shared memory of each block of the cluster whose rank's bit `ranks` has,
// at whose own barriers the bytes arrive.
__device__ inline void copy_bulk_to_blocks(uint32_t to, const void* from, uint32_t bytes,
                                           uint32_t barrier, int ranks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(to),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier),
      "h"(static_cast<uint16_t>(ranks))
      : "memory");
}

// A box from this column and row on, whose bytes arrive at the barrier. The map is a parameter of
// the kernel.
__device__ inline void copy_box(uint32_t to, const TensorMap& map, int column, int row,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__device__ inline void prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Asks for a line of memory to be brought to L2.
__device__ inline void prefetch_line(const void* at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

// Of this block's.
__device__ inline void store_8(uint32_t to, uint2 value) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(value.x), "r"(value.y) : "memory");
}

__device__ inline void store_16(uint32_t to, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

// 16 bytes.
__device__ inline void copy_16(uint32_t to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}
__device__ inline void copy_4(uint32_t to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}
// The same as copy_16, or 16 zero bytes; `from` is a valid address in either case.
__device__ inline void copy_16_or_zeros(uint32_t to, const void* from, bool copies) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
               "l"(__cvta_generic_to_global(from)), "r"(copies ? 16 : 0)
               : "memory");
}
// The thread arrives once all of its copies so far have.
__device__ inline void barrier_arrive_after_copies(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
// Until all copies of this thread have arrived.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// What kernels before this one have written may be read from here on.
__device__ inline void wait_for_earlier_kernels() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// The blocks of the kernel after this one may begin once all of this one have, until they ask what
// this one has written.
__device__ inline void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Threads of all blocks of the cluster meet: all of them arrive, then wait.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
// The same where what was written before need not be visible after, except for barriers
// (fence_barrier_init).
__device__ inline void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// At the barrier in the same place of block `rank`, to say that what copies brought has been read.
// Releasing anything written, too, would take a MEMBAR.GPU: a microsecond.
__device__ inline void barrier_arrive_at_block(uint32_t barrier, uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n"
      "}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
// The same place in the shared memory of block `rank` of the cluster.
__device__ inline uint32_t address_in_block(uint32_t address, int rank) {
  uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
// To memory of a block of the cluster, at whose barrier the bytes arrive.
__device__ inline void store_2_to_block(uint32_t to, float first, float second, uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
          to),
      "f"(first), "f"(second), "r"(barrier)
      : "memory");
}

}  // namespace banyan::cuda::device
