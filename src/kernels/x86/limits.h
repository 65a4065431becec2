// The vector and tile loops of kernels/limits.h, which measure a machine's peak throughput.
#pragma once

#include "kernels/limits.h"
#include "kernels/scratch.h"
#include "kernels/vector/vec_math.h"
#include "tensor/float_types.h"

namespace banyan::simd {

// Makes the compiler assume that `x` is used and modified.
template <class X>
[[gnu::always_inline]] static inline void keep(X& x) {
  asm volatile("" : "+x"(x));
}

// Independent sums: enough to hide the latency of a product, and with an operand they fit the
// sixteen registers of AVX2.
constexpr int kChains = 12;

// Repeats sum = step(sum, x) for all chains.
template <class Sum, class X, class Step>
[[gnu::always_inline]] static inline void run_chains(int64_t rounds, Sum zero, X x,
                                                     const Step& step) {
  Sum sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) sums[i] = zero;
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) keep(sums[i]);
  keep(x);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) {
      keep(x);  // prevents hoisting out of the loop
      sums[i] = step(sums[i], x);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) keep(sums[i]);
}

template <class V>
double multiply_f32(int64_t rounds) {
  run_chains(rounds, V::set(0), V::set(1), [](auto sum, auto x) { return V::fma(x, x, sum); });
  return 2.0 * kChains * V::kLanes * static_cast<double>(rounds);
}

template <class V>
double multiply_bf16(int64_t rounds) {
  constexpr int32_t kOnes = 0x3f803f80;
  run_chains(rounds, V::set(0), V::set_dword(kOnes),
             [](auto sum, auto x) { return V::dot2(sum, x, x); });
  return 4.0 * kChains * V::kLanes * static_cast<double>(rounds);
}

template <class V>
double multiply_bytes(int64_t rounds) {
  constexpr int32_t kOnes = 0x01010101;
  run_chains(rounds, V::set_dword(0), V::set_dword(kOnes),
             [](auto sum, auto x) { return V::dot4_small(sum, x, x); });
  return 8.0 * kChains * V::kLanes * static_cast<double>(rounds);
}

// Reads several streams in parallel, which is faster on some processors.
template <class V, bool kAsks>
[[gnu::always_inline]] static inline void read_streams(const std::byte* data, size_t bytes,
                                                       size_t ahead) {
  constexpr size_t kStreams = 4, kLine = 64;
  constexpr int kRegisters = static_cast<int>(kLine / sizeof(typename V::I));
  size_t stride = bytes / kStreams;
  for (size_t i = 0; i < stride; i += kLine) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * stride + i;
      if constexpr (kAsks) __builtin_prefetch(line + ahead);
#pragma GCC unroll 2
      for (int v = 0; v < kRegisters; ++v) {
        auto bytes_read = V::load_line(line, v);
        keep(bytes_read);
      }
    }
  }
}

template <class V>
void read_lines(const std::byte* data, size_t bytes, size_t ahead) {
  if (ahead == 0) return read_streams<V, false>(data, bytes, 0);
  read_streams<V, true>(data, bytes, ahead);
}

// Blocks of 2 x 2 tiles over kSteps steps of k, all in cache; 4 kB per step.
template <class T, bool kBytes, int64_t kSteps>
double multiply_tiles(int64_t rounds) {
  constexpr int64_t kTileBytes = 1024, kRowBytes = 64;
  constexpr int64_t kStepBytes = 4 * kTileBytes;
  auto* operands = reinterpret_cast<std::byte*>(worker_scratch(kSteps * kStepBytes / 4));
  auto* ones = reinterpret_cast<uint16_t*>(operands);
  for (int64_t i = 0; i < kSteps * kStepBytes / 2; ++i) ones[i] = kBytes ? 0x0101 : 0x3f80;
  T::begin();
  T::template zero<0>();
  T::template zero<1>();
  T::template zero<2>();
  T::template zero<3>();
  for (int64_t round = 0; round < rounds; ++round) {
    const std::byte* step = operands + round % kSteps * kStepBytes;
    T::template load<4>(step, kRowBytes);
    T::template load<5>(step + kTileBytes, kRowBytes);
    T::template load<6>(step + 2 * kTileBytes, kRowBytes);
    T::template load<7>(step + 3 * kTileBytes, kRowBytes);
    if constexpr (kBytes) {
      T::template dot_bytes<0, 4, 6>();
      T::template dot_bytes<1, 4, 7>();
      T::template dot_bytes<2, 5, 6>();
      T::template dot_bytes<3, 5, 7>();
    } else {
      T::template dot_bf16<0, 4, 6>();
      T::template dot_bf16<1, 4, 7>();
      T::template dot_bf16<2, 5, 6>();
      T::template dot_bf16<3, 5, 7>();
    }
  }
  T::end();
  constexpr double kProducts = 4 * 16 * 16 * (kBytes ? 64 : 32);
  return 2 * kProducts * static_cast<double>(rounds);
}

// Sizes that fit the level-1 and the level-2 cache.
constexpr int64_t kStepsInL1 = 8, kStepsInL2 = 192;

}  // namespace banyan::simd
