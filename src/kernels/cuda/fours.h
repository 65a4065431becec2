// Floats in fours, which a GPU loads and stores at once where they lie at multiples of 16 bytes.
// Elsewhere kernels go by single floats, to the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"

namespace banyan::cuda {

template <int N>
struct alignas(N * sizeof(float)) Floats {
  float at[N];
};
using Four = Floats<4>;

template <int N>
BANYAN_HOST_DEVICE Floats<N> load(const float* from) {
  return *reinterpret_cast<const Floats<N>*>(from);
}
template <int N>
BANYAN_HOST_DEVICE void store(float* to, const Floats<N>& values) {
  *reinterpret_cast<Floats<N>*>(to) = values;
}

BANYAN_HOST_DEVICE inline bool begins_fours(const void* data) {
  return std::bit_cast<uintptr_t>(data) % sizeof(Four) == 0;
}
BANYAN_HOST_DEVICE constexpr bool begins_fours(int64_t columns) {
  return columns % 4 == 0;
}
// Whether rows lie in fours, given all that their addresses are made of: arrays, and numbers of
// columns.
template <class... T>
BANYAN_HOST_DEVICE constexpr bool in_fours(T... parts) {
  return (begins_fours(parts) && ...);
}

// Columns c to c + 3 of a row; those from `dim` on are `rest`. N: 4 if they lie in fours, or 1.
template <int N>
BANYAN_HOST_DEVICE Four load_four(const float* row, int64_t c, int64_t dim, float rest = 0) {
  if (N == 4 && c < dim) return load<4>(row + c);
  Four four;
  BANYAN_UNROLL
  for (int i = 0; i < 4; ++i) four.at[i] = N == 1 && c + i < dim ? row[c + i] : rest;
  return four;
}
template <int N>
BANYAN_HOST_DEVICE void store_four(float* row, int64_t c, int64_t dim, const Four& four) {
  if (N == 4 && c < dim) store<4>(row + c, four);
  BANYAN_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (N == 1 && c + i < dim) row[c + i] = four.at[i];
  }
}

// Eight floats, wherever they lie.
using Eight = Floats<8>;
BANYAN_DEVICE inline Eight load_eight(const float* from) {
  Eight all;
  bool fours = begins_fours(from);
  BANYAN_UNROLL
  for (int half = 0; half < 8; half += 4) {
    Four four = fours ? load_four<4>(from, half, 8) : load_four<1>(from, half, 8);
    BANYAN_UNROLL
    for (int i = 0; i < 4; ++i) all.at[half + i] = four.at[i];
  }
  return all;
}

BANYAN_HOST_DEVICE constexpr Eight eight_of(const Four& first, const Four& second) {
  Eight all;
  for (int i = 0; i < 4; ++i) all.at[i] = first.at[i], all.at[4 + i] = second.at[i];
  return all;
}

// Calls body.operator()<N>(r, c) for columns [c, c + N) of each row, by all threads of all blocks:
// N is 4 if `fours`, or 1.
template <class Block, class Body>
BANYAN_DEVICE void for_columns(Block& block, int64_t rows, int64_t dim, bool fours,
                               const Body& body) {
  auto run = [&]<int N>() {
    int64_t steps = dim / N;
    for_all(block, rows * steps, [&](int64_t i) {
      int64_t r = quotient(i, steps);
      body.template operator()<N>(r, (i - r * steps) * N);
    });
  };
  fours ? run.template operator()<4>() : run.template operator()<1>();
}
// What launches that.
constexpr Shape column_shape(int64_t rows, int64_t dim, bool fours) {
  return {.blocks = blocks_for(rows * dim / (fours ? 4 : 1))};
}

}  // namespace banyan::cuda
