// What kernels are written in: a block of threads that runs in phases.
//
// A kernel is a struct with its arguments and `template <class Block> operator()(Block&)`. Code
// outside of phases is uniform: all threads compute the same from what they all see, and write
// nothing. Work of single threads stands in a phase, `block.each([&](int thread) { ... })`, which
// begins and ends with a barrier. In a phase, no thread may read what another one writes.
//
// So the order of threads within a phase changes nothing, and a host can run a phase as a loop
// (emulated/block.h). On a GPU a phase is its body between two __syncthreads (device/block.cuh).
// Both have these members:
//
//   index(), count()      this block and the number of blocks: kernels take items in strides
//   each(body)            body(thread) on all threads
//   one(body)             body() on one thread
//   reduce(body, combine) body(thread) of all threads combined in the order of tree_reduce
//   reduce_warps(body, combine)  the same of each warp, for its threads: not a phase, so that body
//                         may write nothing
//   reduce_lanes(lanes, body, combine)  the same of each `lanes` threads in a row, a power of two
//                         up to a warp, for each of them, if their order changes nothing
//   sum_quads(body)       (v0 + v1) + (v2 + v3) of the values of four threads in a row, for each of
//                         them: not a phase; body may write what its thread alone reads
//   alone(body)           body(thread) on all threads, of which none reads what another one
//                         writes: not a phase
//   multiply(body, values...)  products on tensor cores, see below
//   begin_fetching()      before the first fetch
//   fetch(to, from, bytes)  begins a copy to shared memory: multiples of 16 bytes, one copy at a
//                         time, to what no thread reads any more since the last barrier
//   wait_for_fetched()    a barrier at which it has arrived
//   exclusive_sums(values)  replaces values[thread], integers, by the sum of those before it
//   shared<T>()           memory of the block, Shape::shared_bytes of it
//   scratch()             global memory of the block, Shape::scratch_bytes of it, aligned to 256
//   PerThread<T>          a value of each thread that lives across phases: value[thread]
//
// multiply is a phase: what its products read in shared memory was written before. `values` are all
// Sums and SplitFragments (split_fragments.h) that they add to or read. body(products) calls
// products.add<n, transposed>(sums, a, b, step, keeps) for each of them in order: sums [64, n] =
// a b^T + (keeps ? sums : 0), where a(thread) are fragments of an operand [64, 16] of bf16, and b
// the columns from 16 step on of OperandTiles [n, ...]; if transposed, their rows from 16 step on:
// [16, n].
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace banyan::cuda {

inline constexpr int kWarp = 32, kWarpgroup = 128;  // threads
inline constexpr int kBlockThreads = 128;           // of every kernel that does not say otherwise

// Shared memory of a block on a GPU: at most, and what those of Block may take besides Shape's.
inline constexpr size_t kSharedBytes = size_t{227} << 10, kStaticBytes = 1024;

// How a kernel is launched.
struct Shape {
  int64_t blocks = 0;  // at most: a device launches as many as fill it. 0: as many as fill it
  size_t shared_bytes = 0;
  size_t scratch_bytes = 0;  // per block
};

// What no kernel writes, so that it may be brought to the GPU's cache before earlier kernels end.
struct Constants {
  const float* data;
  int64_t count;
};

// As many blocks as have a thread for each item.
constexpr int64_t blocks_for(int64_t items) {
  return 1 + (items - 1) / kBlockThreads;
}

// Sums and maxima, for Block::reduce.
struct Plus {
  template <class T>
  BANYAN_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return a + b;
  }
};
struct Largest {  // ignores NaN in b
  template <class T>
  BANYAN_HOST_DEVICE constexpr T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

// Items first, first + step, ... of [0, count), for threads of one block.
template <class Block, class Body>
BANYAN_DEVICE void for_each(Block& block, int64_t count, const Body& body) {
  block.each([&](int thread) {
    for (int64_t i = thread; i < count; i += Block::kThreads) body(i);
  });
}

// The same for all threads of all blocks.
template <class Block, class Body>
BANYAN_DEVICE void for_all(Block& block, int64_t count, const Body& body) {
  block.each([&](int thread) {
    for (int64_t i = block.index() * Block::kThreads + thread; i < count;
         i += block.count() * Block::kThreads) {
      body(i);
    }
  });
}

// The same value for every thread.
template <class T>
struct Uniform {
  T value;
  BANYAN_HOST_DEVICE constexpr const T& operator[](int /*thread*/) const { return value; }
};

// body(thread) of the threads of each team, combined, for its threads. A team is a warp or the
// block.
template <int Team, class Block, class Body, class Combine>
BANYAN_DEVICE auto reduce_teams(Block& block, const Body& body, const Combine& combine) {
  static_assert(Team == kWarp || Team == Block::kThreads);
  if constexpr (Team == kWarp) {
    return block.reduce_warps(body, combine);
  } else {
    return Uniform<decltype(body(0))>{block.reduce(body, combine)};
  }
}

// The sum of value(i) over [0, count): of each thread in ascending order, then of all as a tree.
template <class Block, class Value>
BANYAN_DEVICE auto sum_over(Block& block, int64_t count, const Value& value) {
  using T = decltype(value(int64_t{0}));
  return block.reduce(
      [&](int thread) {
        T sum = 0;
        for (int64_t i = thread; i < count; i += Block::kThreads) sum += value(i);
        return sum;
      },
      Plus());
}

}  // namespace banyan::cuda
