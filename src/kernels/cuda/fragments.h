// Quantised weights as tensor cores take them: chunks of 64 rows and 128 columns, [row tiles,
// column chunks], each with its codes, scales and zeros, so that one bulk copy fetches it.
//
// The codes are in the order of fragments: a thread of a warpgroup finds those that it multiplies
// next to each other. For 32 bytes of columns (32 integers, or 16 codes of fp8, which become bf16),
// register r of lane l of warp w holds four bytes of row 16 w + l / 4 + 8 (r % 2), from byte
// 4 (l % 4) + 16 (r / 2) on. Columns after the last one are zeros, which x is there, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace banyan::cuda {

enum class Format : uint8_t { kF32, kBF16, kF16, kInt8, kInt4, kUint4, kMxfp4, kFp8 };

constexpr bool has_scales(Format format) {
  return format >= Format::kInt8;
}
constexpr bool has_integers(Format format) {
  return has_scales(format) && format != Format::kFp8;
}
constexpr bool has_nibbles(Format format) {
  return has_integers(format) && format != Format::kInt8;
}

inline constexpr int64_t kChunkRows = 64, kChunkColumns = 128;

// Whether groups of this length are whole chunks or divide one: then tensor cores multiply them.
constexpr bool in_fragments(Format format, int64_t k, int64_t group) {
  bool divides = group == 32 || group == 64 || group % kChunkColumns == 0;
  return has_scales(format) && (group == k || divides);
}

class Fragments {
 public:
  BANYAN_HOST_DEVICE constexpr Fragments(Format format, int64_t k, int64_t group)
      : format_(format), k_(k), group_(group) {}

  BANYAN_HOST_DEVICE constexpr int64_t chunks() const {  // of a row of chunks
    return (k_ + kChunkColumns - 1) / kChunkColumns;
  }
  // Groups of which a chunk has scales: one if it is inside a group.
  BANYAN_HOST_DEVICE constexpr int64_t chunk_groups() const {
    return group_ < kChunkColumns && group_ < k_ ? kChunkColumns / group_ : 1;
  }
  BANYAN_HOST_DEVICE constexpr int64_t code_bytes() const {
    return kChunkRows * kChunkColumns / (has_nibbles(format_) ? 2 : 1);
  }
  BANYAN_HOST_DEVICE constexpr int64_t zeros_offset() const {
    return code_bytes() + chunk_groups() * kChunkRows * 4;
  }
  BANYAN_HOST_DEVICE constexpr int64_t chunk_bytes() const {
    return zeros_offset() + (format_ == Format::kUint4 ? chunk_groups() * kChunkRows : 0);
  }
  constexpr int64_t bytes(int64_t n) const {
    return (n + kChunkRows - 1) / kChunkRows * chunks() * chunk_bytes();
  }

  struct Place {
    int64_t byte;
    int nibble;
  };
  // Nibbles of a byte are of one row, so that rows can be packed at the same time.
  BANYAN_HOST_DEVICE constexpr Place code(int64_t j, int64_t c) const {
    if (format_ == Format::kFp8) return {fp8_code(j, c), 0};
    int64_t row = j % kChunkRows, column = c % kChunkColumns, step = column / 32;
    int64_t reg = row % 16 / 8 + column % 32 / 16 * 2, byte = column % 4;
    int64_t lane = row % 8 * 4 + column % 16 / 4, thread = row / 16 * 32 + lane;
    int64_t at = chunk(j, c) + (has_nibbles(format_) ? step / 2 : step) * 2048 + thread * 16;
    if (!has_nibbles(format_)) return {at + reg * 4 + byte, 0};
    at += step % 2 * 8;
    if (format_ == Format::kMxfp4) return {at + reg * 2 + byte / 2, static_cast<int>(byte % 2)};
    return {at + reg % 2 * 4 + byte, static_cast<int>(reg / 2)};
  }
  // Of a group of several chunks the last one has the scale, where the group's sum is complete.
  BANYAN_HOST_DEVICE constexpr int64_t scale(int64_t j, int64_t g) const {
    int64_t last = (g + 1) * group_ - 1;
    return chunk(j, last) + code_bytes() + (place(g) * kChunkRows + j % kChunkRows) * 4;
  }
  // Every chunk has the zeros of its groups.
  BANYAN_HOST_DEVICE constexpr int64_t zero(int64_t j, int64_t c) const {
    return chunk(j, c) + zeros_offset() + place(c / group_) * kChunkRows + j % kChunkRows;
  }

 private:
  BANYAN_HOST_DEVICE constexpr int64_t fp8_code(int64_t j, int64_t c) const {
    int64_t row = j % kChunkRows, column = c % kChunkColumns, step = column / 16;
    int64_t reg = row % 16 / 8 + column % 16 / 8 * 2;
    int64_t lane = row % 8 * 4 + column % 8 / 2, thread = row / 16 * 32 + lane;
    return chunk(j, c) + step / 2 * 2048 + thread * 16 + step % 2 * 8 + reg * 2 + column % 2;
  }
  BANYAN_HOST_DEVICE constexpr int64_t chunk(int64_t j, int64_t c) const {
    return (j / kChunkRows * chunks() + c / kChunkColumns) * chunk_bytes();
  }
  BANYAN_HOST_DEVICE constexpr int64_t place(int64_t g) const {
    return chunk_groups() == 1 ? 0 : g % chunk_groups();
  }

  Format format_;
  int64_t k_, group_;
};

}  // namespace banyan::cuda
