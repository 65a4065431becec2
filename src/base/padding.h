// Padding: the bytes between the members of an object, which copies and initialisers may leave with
// any value. Where bytes of objects are compared, padding must be cleared first.
#pragma once

#include <cstring>
#include <type_traits>

namespace banyan {

// Clang has no such function up to version 19.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define BANYAN_CLEARS_PADDING 1
#endif
#endif
#ifndef BANYAN_CLEARS_PADDING
#define BANYAN_CLEARS_PADDING 0
#endif

// Copies an object to `to`, with zeros for its padding if the compiler can do that.
template <class T>
void copy_without_padding(void* to, const T& object) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &object, sizeof(T));
#if BANYAN_CLEARS_PADDING
  __builtin_clear_padding(static_cast<T*>(to));
#endif
}

}  // namespace banyan
