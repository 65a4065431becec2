// Memory of one step: allocated by moving an offset forward, released all at once or back to a
// mark. Never touches the heap. One thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"

namespace banyan {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // An arena without memory that only counts: its addresses must not be touched. A pass over
  // measuring kernels finds with it how many bytes a real pass needs.
  Arena() = default;
  explicit Arena(size_t bytes) : block_(bytes), measuring_(false) {}

  // `bytes` bytes, aligned to kAlignment, uninitialised. Aborts when the arena is too small.
  void* allocate(size_t bytes);

  template <class T>
  T* allocate_array(int64_t count) {
    return static_cast<T*>(allocate(static_cast<size_t>(count) * sizeof(T)));
  }

  size_t mark() const { return used_; }
  void rewind(size_t mark) { used_ = mark; }

  size_t high_water_bytes() const { return high_water_; }
  bool measuring() const { return measuring_; }

 private:
  MemoryBlock block_;
  bool measuring_ = true;
  size_t used_ = 0;
  size_t high_water_ = 0;
};

}  // namespace banyan
