// What kernels read and write, on the host that decides which of them one launch may do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace banyan::cuda {

struct MemoryRange {
  const void* data;
  size_t bytes;

  bool apart(const MemoryRange& other) const {
    const auto* here = static_cast<const std::byte*>(data);
    const auto* there = static_cast<const std::byte*>(other.data);
    return here + bytes <= there || there + other.bytes <= here;
  }
};

inline MemoryRange floats(const float* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(float)};
}

}  // namespace banyan::cuda
