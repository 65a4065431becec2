// Products of f32 on tensor cores: each operand is split into two bf16 numbers, high + low, which
// keep sixteen of its bits, and a product is low high + high low + high high. Its relative error is
// below 2^-16.
//
// A product of a warpgroup (Block::multiply) has an operand [64, k] in registers, as fragments of
// sixteen columns, and one in shared memory, as tiles (shared_layout.h). Its sums [64, n] are where
// the fragments of a next product are, so that products follow each other in registers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/fours.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/shared_layout.h"

namespace banyan::cuda {

using Pair = Floats<2>;

BANYAN_HOST_DEVICE constexpr Pair operator*(Pair x, float factor) {
  return {{x.at[0] * factor, x.at[1] * factor}};
}
BANYAN_HOST_DEVICE constexpr Pair operator*(Pair x, Pair y) {
  return {{x.at[0] * y.at[0], x.at[1] * y.at[1]}};
}

// Two neighbours, each as two numbers of bf16.
struct SplitPair {
  uint32_t high, low;
};
BANYAN_HOST_DEVICE inline SplitPair split(Pair x) {
  uint32_t high = rounded_pair(x.at[0], x.at[1]);
  auto first = std::bit_cast<float>(high << 16), second = std::bit_cast<float>(high & 0xffff0000u);
  return {high, rounded_pair(x.at[0] - first, x.at[1] - second)};
}

// What a thread of the warpgroup has of sums [64, n]: value i is in this row and column.
template <int n>
struct Sums {
  float at[n / 2] = {};

  BANYAN_HOST_DEVICE static constexpr int row(int thread, int i) {
    return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
  }
  BANYAN_HOST_DEVICE static constexpr int column(int thread, int i) {
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
  }
};

// What it has of an operand [64, 16 steps] of bf16: two neighbours in a register.
template <int steps>
struct OperandFragments {
  uint32_t at[steps][4];
};
// The same of one that is split.
template <int steps>
struct SplitFragments {
  OperandFragments<steps> high, low;

  // Of what pair_at(row, column) returns, for the even columns that the thread has.
  template <class PairAt>
  BANYAN_DEVICE void assign(int thread, const PairAt& pair_at) {
    BANYAN_UNROLL
    for (int step = 0; step < steps; ++step) {
      BANYAN_UNROLL
      for (int r = 0; r < 4; ++r) {
        int i = step * 8 + 2 * r;  // as if these were sums
        set(step, r,
            pair_at(Sums<16 * steps>::row(thread, i), Sums<16 * steps>::column(thread, i)));
      }
    }
  }
  BANYAN_DEVICE void assign(const Sums<16 * steps>& sums) {
    BANYAN_UNROLL
    for (int step = 0; step < steps; ++step) {
      BANYAN_UNROLL
      for (int r = 0; r < 4; ++r) {
        int i = step * 8 + 2 * r;
        set(step, r, {{sums.at[i], sums.at[i + 1]}});
      }
    }
  }

 private:
  BANYAN_DEVICE void set(int step, int r, Pair pair) {
    SplitPair of = split(pair);
    high.at[step][r] = of.high;
    low.at[step][r] = of.low;
  }
};

// An operand of bf16 in shared memory, or to be: tiles of 64 columns, each [rows, 64].
struct OperandTiles {
  std::byte* at;
  int64_t rows;

  BANYAN_HOST_DEVICE constexpr int64_t tile_bytes() const { return rows * int64_t{kTileRowBytes}; }
  // Where the pair from an even column on lies.
  BANYAN_HOST_DEVICE std::byte* pair(int64_t row, int64_t column) const {
    auto of_tile = static_cast<uint32_t>(column) % 64;
    uint32_t chunk = swizzled_chunk(static_cast<uint32_t>(row), of_tile / 8);
    return at + column / 64 * tile_bytes() + row * int64_t{kTileRowBytes} + chunk + of_tile % 8 * 2;
  }
  // From a row on that is a multiple of eight.
  BANYAN_HOST_DEVICE OperandTiles from_row(int64_t row) const {
    return {at + row * int64_t{kTileRowBytes}, rows};
  }
};

// One that is split.
struct SplitTiles {
  OperandTiles high, low;

  BANYAN_HOST_DEVICE static constexpr int64_t bytes(int64_t rows, int64_t columns) {
    return 2 * rows * columns * int64_t{sizeof(BFloat16)};
  }
  BANYAN_HOST_DEVICE SplitTiles(std::byte* at, int64_t rows, int64_t columns)
      : high{at, rows}, low{at + bytes(rows, columns) / 2, rows} {}
  BANYAN_HOST_DEVICE SplitTiles(OperandTiles high, OperandTiles low) : high(high), low(low) {}

  BANYAN_HOST_DEVICE SplitTiles from_row(int64_t row) const {
    return {high.from_row(row), low.from_row(row)};
  }
  BANYAN_DEVICE void store(int64_t row, int64_t column, Pair pair) const {
    SplitPair of = split(pair);
    *reinterpret_cast<uint32_t*>(high.pair(row, column)) = of.high;
    *reinterpret_cast<uint32_t*>(low.pair(row, column)) = of.low;
  }
};

// sums = a b^T + (keeps ? sums : 0), or a b where `transposed`, of split operands; `sums` and `a`
// are values of each thread. Small terms come first.
template <int n, int steps, bool transposed = false, class Products, class SumsOf,
          class FragmentsOf>
BANYAN_DEVICE void add_split(Products& products, SumsOf& sums, FragmentsOf& a, const SplitTiles& b,
                             bool keeps) {
  BANYAN_UNROLL
  for (int step = 0; step < steps; ++step) {
    auto high = [&](int thread) -> const uint32_t(&)[4] { return a[thread].high.at[step]; };
    auto low = [&](int thread) -> const uint32_t(&)[4] { return a[thread].low.at[step]; };
    products.template add<n, transposed>(sums, low, b.high, step, keeps || step > 0);
    products.template add<n, transposed>(sums, high, b.low, step, true);
    products.template add<n, transposed>(sums, high, b.high, step, true);
  }
}

}  // namespace banyan::cuda
