// Overflow-checked arithmetic on untrusted sizes: an overflow returns nullopt and never wraps.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>

namespace banyan {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) {
  T sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_multiply(T a, T b) {
  T product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The number of elements of a shape; 1 for a scalar (empty shape). nullopt if a dimension is
// negative or a partial product, from the left, overflows.
[[nodiscard]] constexpr std::optional<int64_t> checked_elements(std::span<const int64_t> shape) {
  std::optional<int64_t> elements = 1;
  for (int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    elements = checked_multiply(*elements, dimension);
    if (!elements) return std::nullopt;
  }
  return elements;
}

}  // namespace banyan
