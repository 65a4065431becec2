// Concepts that state what the algorithms require of a vector class such as Avx2. vec_avx512.h
// documents each function. Kernel tables check them first, so that a missing function gives one
// short error.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "tensor/float_types.h"

namespace banyan::simd {

// Rows of S can be loaded and stored as floats.
template <class V, class S>
concept LoadsAs = requires(typename V::F x, const S* from, S* to, int64_t count) {
  { V::load(from) } -> std::same_as<typename V::F>;
  { V::load_first(from, count) } -> std::same_as<typename V::F>;
  V::store(to, x);
  V::store_first(to, count, x);
};

// Codes of a quantised row can be loaded as floats: int8 unchanged, e4m3 as 2^-8 of its value.
template <class V, class S>
concept LoadsCodes = requires(const S* from, int64_t count) {
  { V::load(from) } -> std::same_as<typename V::F>;
  { V::load_first(from, count) } -> std::same_as<typename V::F>;
};
// A code's value divided by what LoadsCodes loads.
template <class S>
constexpr float kCodeUnit = std::same_as<S, Float8E4M3> ? 256.0f : 1.0f;

// Arithmetic on kLanes floats.
template <class V>
concept FloatVector =
    LoadsAs<V, float> && LoadsAs<V, BFloat16> && LoadsAs<V, Float16> && LoadsCodes<V, int8_t> &&
    LoadsCodes<V, Float8E4M3> && requires(typename V::F x, float value, float* sums) {
      { V::kLanes } -> std::convertible_to<int64_t>;
      { V::kTileRows } -> std::convertible_to<int>;
      { V::set(value) } -> std::same_as<typename V::F>;
      { V::add(x, x) } -> std::same_as<typename V::F>;
      { V::sub(x, x) } -> std::same_as<typename V::F>;
      { V::mul(x, x) } -> std::same_as<typename V::F>;
      { V::div(x, x) } -> std::same_as<typename V::F>;
      { V::fma(x, x, x) } -> std::same_as<typename V::F>;
      { V::max(x, x) } -> std::same_as<typename V::F>;
      { V::min(x, x) } -> std::same_as<typename V::F>;
      { V::abs(x) } -> std::same_as<typename V::F>;
      { V::round(x) } -> std::same_as<typename V::F>;
      { V::copy_sign(x, x) } -> std::same_as<typename V::F>;
      { V::power_of_two(x) } -> std::same_as<typename V::F>;
      { V::lane0(x) } -> std::same_as<float>;
      { V::sum(x) } -> std::same_as<float>;
      { V::largest(x) } -> std::same_as<float>;
      V::sum4(x, x, x, x, sums);
    };

// Adds dot products of bf16 pairs.
template <class V>
concept PairVector =
    FloatVector<V> && requires(typename V::F x, typename V::I pairs, const BFloat16* from,
                               BFloat16* to, typename V::I (&rows)[V::kLanes]) {
      { V::load_pairs(from) } -> std::same_as<typename V::I>;
      { V::broadcast_pair(from) } -> std::same_as<typename V::I>;
      { V::dot2(x, pairs, pairs) } -> std::same_as<typename V::F>;
      { V::interleave_low(pairs, pairs) } -> std::same_as<typename V::I>;
      { V::interleave_high(pairs, pairs) } -> std::same_as<typename V::I>;
      { V::columns_low(x, x) } -> std::same_as<typename V::F>;
      { V::columns_high(x, x) } -> std::same_as<typename V::F>;
      V::store_rounded(to, x);
      V::store_rounded(to, x, x);
      V::transpose(rows);
    };

}  // namespace banyan::simd
