// What kernels read and write, on the host that decides which of them one launch may do.
#pragma once

#include <array>
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

template <class T>
MemoryRange range_of(const T* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(T)};
}
inline MemoryRange floats(const float* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(float)};
}
// `rows` of so many columns, from one to the next `stride`.
inline MemoryRange float_rows(const float* data, int64_t rows, int64_t stride, int64_t columns) {
  return floats(data, rows > 0 ? (rows - 1) * stride + columns : 0);
}

template <size_t N, size_t M>
bool all_apart(const std::array<MemoryRange, N>& some, const std::array<MemoryRange, M>& others) {
  for (const MemoryRange& a : some) {
    for (const MemoryRange& b : others) {
      if (!a.apart(b)) return false;
    }
  }
  return true;
}

// x of a product, and where it is to lie rounded or quantised.
struct PreparedOperand {
  MemoryRange x, workspace;

  // Whether a kernel that writes and reads these leaves both as they are, and reads nothing that
  // rounding overwrites.
  template <class... Written>
  bool left_by(const MemoryRange& read, const Written&... written) const {
    return read.apart(workspace) && ((written.apart(workspace) && written.apart(x)) && ...);
  }
};

}  // namespace banyan::cuda
