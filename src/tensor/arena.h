// The memory of one step: allocated by bumping an offset, released all at once or back to a mark.
// Never touches the heap. One thread.
//
// Memory may be reused while queued work still reads it: later work is queued behind that work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/device.h"

namespace banyan {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // An arena without memory that only counts. A pass over measuring kernels uses it to find how
  // many bytes a real pass needs. Ops never touch memory themselves, so they need no special case.
  Arena() = default;
  explicit Arena(size_t bytes, const DeviceQueue& queue = host_queue())
      : block_(queue, bytes), measuring_(false) {}

  // Returns `bytes` uninitialised bytes, aligned to kAlignment. Aborts when the arena is full.
  void* allocate(size_t bytes);

  // The last `bytes` of the arena, for one piece of work: the same for the same bytes, wherever
  // allocate() has got to, so that work which follows finds what it left there. Aborts when they
  // are allocated.
  void* last(size_t bytes);

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
