// Memory of one step: allocated by moving an offset forward, released all at once or back to a
// mark. Never touches the heap. One thread.
//
// Memory that is released while work on it is still queued may be given out again: what comes next
// is queued after that work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/device.h"

namespace banyan {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // An arena without memory that only counts. A pass over measuring kernels finds with it how many
  // bytes a real pass needs; ops touch no memory themselves, so none of them has to know.
  Arena() = default;
  explicit Arena(size_t bytes, const DeviceQueue& queue = host_queue())
      : block_(queue, bytes), measuring_(false) {}

  // `bytes` bytes, aligned to kAlignment, uninitialised. Aborts when the arena is too small.
  void* allocate(size_t bytes);

  template <class T>
  T* allocate_array(int64_t count) {
    return static_cast<T*>(allocate(static_cast<size_t>(count) * sizeof(T)));
  }

  size_t mark() const { return used_; }
  void rewind(size_t mark) { used_ = mark; }

  size_t high_water_bytes() const { return high_water_; }

 private:
  DeviceBlock block_;
  bool measuring_ = true;
  size_t used_ = 0;
  size_t high_water_ = 0;
};

}  // namespace banyan
