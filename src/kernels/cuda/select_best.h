// The best entries of an array by block: those of the highest order, the lowest index first among
// equals.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"

namespace banyan::cuda {

// Calls emit(rank, i) for the `count` best entries of [0, total), in ascending order of i, where
// order(i) is a number of 32 bits and count <= total. Uses an int64_t of shared memory per thread.
template <class Block, class Order, class Emit>
BANYAN_DEVICE void select_best(Block& block, int64_t total, int64_t count, int64_t* shared,
                               const Order& order, const Emit& emit) {
  auto at_least = [&](uint32_t bound) {
    return sum_over(block, total, [&](int64_t i) -> int64_t { return order(i) >= bound ? 1 : 0; });
  };
  uint32_t least_taken = 0;  // the highest bound that enough entries reach
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if (at_least(least_taken | bit) >= count) least_taken |= bit;
  }
  int64_t better = least_taken == 0xffffffffu ? 0 : at_least(least_taken + 1);
  int64_t equal_taken = count - better;
  // Each thread has consecutive entries. First the entries equal to the least that come before.
  int64_t share = (total + Block::kThreads - 1) / Block::kThreads;
  auto for_own = [&](int thread, const auto& body) {
    int64_t end = least((thread + 1) * share, total);
    for (int64_t i = thread * share; i < end; ++i) body(i, order(i));
  };
  block.each([&](int thread) {
    shared[thread] = 0;
    for_own(thread, [&](int64_t, uint32_t o) { shared[thread] += o == least_taken ? 1 : 0; });
  });
  block.exclusive_sums(shared);
  typename Block::template PerThread<int64_t> equal_before;
  auto for_taken = [&](int thread, const auto& body) {
    int64_t equal = equal_before[thread];
    for_own(thread, [&](int64_t i, uint32_t o) {
      if (o > least_taken || (o == least_taken && equal++ < equal_taken)) body(i);
    });
  };
  block.each([&](int thread) {
    equal_before[thread] = shared[thread];
    shared[thread] = 0;
    for_taken(thread, [&](int64_t) { ++shared[thread]; });
  });
  block.exclusive_sums(shared);
  block.each([&](int thread) {
    int64_t rank = shared[thread];
    for_taken(thread, [&](int64_t i) { emit(rank++, i); });
  });
}

}  // namespace banyan::cuda
