// Rows of x in bf16 or f16, which products read. The kernel that computes x rounds it, too, where
// it can.
#pragma once

#include "kernels/cuda/fours.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// Two neighbours as bf16, the first in the lower half.
BANYAN_HOST_DEVICE inline uint32_t rounded_pair(float first, float second) {
#ifdef __CUDA_ARCH__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
#else
  return from_float<BFloat16>(first).bits | uint32_t{from_float<BFloat16>(second).bits} << 16;
#endif
}

// Eight columns of a row of x, rounded.
template <class T>
struct alignas(16) EightRounded {
  T values[8];
};
// Of `count` columns times `factor`, those that are there; zeros where they end.
template <class T>
BANYAN_DEVICE EightRounded<T> rounded_eight(const float* x, int64_t count, float factor = 1) {
  EightRounded<T> rounded;
  Eight values;
  if (count >= 8) {
    values = load_eight(x);
  } else {
    BANYAN_UNROLL
    for (int c = 0; c < 8; ++c) values.at[c] = c < count ? x[c] : 0.0f;
  }
  BANYAN_UNROLL
  for (int c = 0; c < 8; ++c) rounded.values[c] = from_float<T>(values.at[c] * factor);
  return rounded;
}

// Rounded x as it is to lie in shared memory (shared_layout.h): [segments, column tiles, x_rows] of
// 128 bytes, each swizzled by its row. Columns are filled up with zeros to whole chunks. So one
// bulk copy fetches a column tile of rows from a multiple of eight on.
struct RoundedRows {
  void* workspace;
  int64_t rows, column_tiles;

  BANYAN_HOST_DEVICE static constexpr int64_t column_tiles_of(int64_t k) {
    return (k + kChunkColumns - 1) / kChunkColumns * (kChunkColumns / kTile);
  }
  BANYAN_HOST_DEVICE static constexpr size_t bytes(int64_t rows, int64_t segments, int64_t k) {
    return static_cast<size_t>(rows * segments * column_tiles_of(k)) * kTileRowBytes;
  }
  MemoryRange range() const {  // of the only segment
    return {workspace, static_cast<size_t>(rows * column_tiles) * kTileRowBytes};
  }
  BANYAN_HOST_DEVICE std::byte* row(int64_t row, int64_t segment, int64_t column_tile) const {
    return static_cast<std::byte*>(workspace) +
           ((segment * column_tiles + column_tile) * rows + row) * kTileRowBytes;
  }
  // Eight columns, the first of them a multiple of eight.
  BANYAN_HOST_DEVICE std::byte* chunk(int64_t row_, int64_t segment, int64_t column) const {
    auto chunk = static_cast<uint32_t>(column % kTile) / 8;
    return row(row_, segment, column / kTile) + swizzled_chunk(static_cast<uint32_t>(row_), chunk);
  }
  template <class T>
  BANYAN_DEVICE void store_eight(int64_t row_, int64_t segment, int64_t column,
                                 const EightRounded<T>& x) const {
    *reinterpret_cast<EightRounded<T>*>(chunk(row_, segment, column)) = x;
  }
  // One column of the only segment.
  BANYAN_DEVICE void store_one(int64_t row_, int64_t column, float x) const {
    auto* to = reinterpret_cast<uint16_t*>(chunk(row_, 0, column));
    to[column % 8] = static_cast<uint16_t>(rounded_pair(x, 0));
  }
  // Where four columns of the only segment lie, the first of them a multiple of four.
  struct Place {
    std::byte* at = nullptr;
    int64_t next_tile = 0;  // bytes

    // `columns` further on, whole tiles.
    BANYAN_DEVICE void store(int columns, const Four& x) const {
      struct alignas(8) Pairs {
        uint32_t of[2];
      };
      *reinterpret_cast<Pairs*>(at + columns / int{kTile} * next_tile) = {
          {rounded_pair(x.at[0], x.at[1]), rounded_pair(x.at[2], x.at[3])}};
    }
  };
  BANYAN_DEVICE Place place(int64_t row_, int64_t column) const {
    return {chunk(row_, 0, column) + column % 8 * sizeof(BFloat16), rows * kTileRowBytes};
  }
  BANYAN_DEVICE void store(int64_t row_, int64_t column, const Four& x) const {
    place(row_, column).store(0, x);
  }
};

// Whether a kernel that makes y [rows, dim] of the rows at `from` may round or quantise x of a
// product: that is y, whole chunks of it, and nothing that another block still reads is overwritten
// in `workspace`.
inline bool may_prepare(const GemmArgs& g, const MemoryRange& workspace, const float* y,
                        int64_t rows, int64_t dim, int64_t stride, const float* from,
                        int64_t from_stride) {
  bool is_x = g.x == y && g.x_rows == rows && g.k == dim && g.x_stride == stride;
  if (!is_x || g.segments != 1 || dim % kChunkColumns != 0) return false;
  return workspace.apart(float_rows(from, rows, from_stride, dim));
}

}  // namespace banyan::cuda
