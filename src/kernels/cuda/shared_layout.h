// Layout of operand tiles in shared memory, as wgmma reads and the tensor memory accelerator writes
// them: rows of 64 values of bf16 or f16 (128 bytes), in groups of eight rows. The 16-byte chunks
// of a group are swizzled so that a column of chunks touches every bank.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

namespace banyan::cuda {

inline constexpr uint32_t kTileRowBytes = 128;
inline constexpr uint32_t kTileAlignment = 1024;  // bytes: a group of eight rows

// The byte offset of byte `column` of `row` in a tile.
BANYAN_HOST_DEVICE constexpr uint32_t swizzled(uint32_t row, uint32_t column) {
  uint32_t offset = row * kTileRowBytes + column;
  return offset ^ ((row & 7) << 4);
}
// The same of a chunk of 16 bytes, in its row.
BANYAN_HOST_DEVICE constexpr uint32_t swizzled_chunk(uint32_t row, uint32_t chunk) {
  return (chunk ^ (row & 7)) << 4;
}

// The matrix descriptor of a tile at `address` (in shared memory, a multiple of kTileAlignment).
// Adding kDescriptorStep advances it by sixteen columns.
BANYAN_HOST_DEVICE constexpr uint64_t tile_descriptor(uint32_t address) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kGroupStride = uint64_t{kTileAlignment >> 4} << 32;
  constexpr uint64_t kRowStride = uint64_t{1} << 16;  // ignored in this layout
  return kSwizzle128 | kGroupStride | kRowStride | ((address & 0x3ffff) >> 4);
}
inline constexpr uint64_t kDescriptorStep = 2;

// The same of tiles that are multiplied along their rows: 64 columns each, the next ones
// `tile_bytes` further on. Adding kTransposedStep advances it by sixteen rows.
BANYAN_HOST_DEVICE constexpr uint64_t transposed_descriptor(uint32_t address, uint32_t tile_bytes) {
  constexpr uint64_t kRowStride = uint64_t{0x3fff} << 16;
  return (tile_descriptor(address) & ~kRowStride) | uint64_t{tile_bytes >> 4} << 16;
}
inline constexpr uint64_t kTransposedStep = 16 * kTileRowBytes >> 4;

}  // namespace banyan::cuda
