// Tensor maps as the interpreter has them: what a GPU's driver would encode, as it is.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/cuda/tensor_map.h"

namespace banyan::ptx {

inline cuda::TensorMap map_of(const cuda::PoolRows& rows) {
  static_assert(sizeof(rows) <= sizeof(cuda::TensorMap));
  cuda::TensorMap map = {};
  std::memcpy(&map, &rows, sizeof(rows));
  return map;
}

inline cuda::PoolRows read_map(const std::byte* map) {
  cuda::PoolRows rows;
  std::memcpy(&rows, map, sizeof(rows));
  return rows;
}

}  // namespace banyan::ptx
