// Boxes of a pool's rows that the tensor memory accelerator copies to shared memory.
#pragma once

#include <compare>
#include <cstdint>

namespace banyan::cuda {

// A pool's rows of `width` values of two bytes, one after the other in memory. A box is `box_rows`
// of them by 64 columns, and becomes a tile as shared_layout.h has it.
struct PoolRows {
  const void* pool;
  int64_t width;
  int box_rows;
  auto operator<=>(const PoolRows&) const = default;
};

// What the accelerator reads of PoolRows; a GPU's driver encodes it.
struct alignas(128) TensorMap {
  unsigned char bytes[128];
};

}  // namespace banyan::cuda
