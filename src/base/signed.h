// The library's containers with int64_t sizes and indexes, which are used everywhere else here.
// Checked, and in place of a cast at each use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace banyan {

// A count that is not negative.
inline size_t as_size(int64_t count) {
  CHECK(count >= 0, "{}", count);
  return static_cast<size_t>(count);
}

// `value` as a narrower integer, which must be able to hold it.
template <class To, class From>
constexpr To narrow(From value) {
  CHECK(std::in_range<To>(value), "{}", value);
  return static_cast<To>(value);
}

// Element `index` of a vector, an array, a span or a string.
template <class Container>
constexpr decltype(auto) at(Container&& values, int64_t index) {
  CHECK(index >= 0 && index < std::ssize(values), "{} of {}", index, std::ssize(values));
  return values[static_cast<size_t>(index)];
}

// Elements [begin, begin + count).
template <class Container>
constexpr auto slice(Container&& values, int64_t begin, int64_t count) {
  std::span all(values);
  CHECK(begin >= 0 && count >= 0 && begin <= std::ssize(all) - count, "{} + {} of {}", begin, count,
        std::ssize(all));
  return all.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
}

template <class T>
std::vector<T> filled(int64_t count, const T& value) {
  return std::vector<T>(as_size(count), value);
}

}  // namespace banyan
