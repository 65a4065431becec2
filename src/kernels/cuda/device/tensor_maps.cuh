// Tensor maps of pools (kernels/cuda/tensor_map.h), which a GPU's driver encodes.
#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstring>
#include <map>

#include "kernels/cuda/shared_layout.h"
#include "kernels/cuda/tensor_map.h"

namespace banyan::cuda::device {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

// cuTensorMapEncodeTiled, or null: the runtime finds it, so that the program starts where there is
// no driver.
inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                       cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();  // forgets it
  bool there = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
  return there ? reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function) : nullptr;
}

class TensorMaps {
 public:
  // Null if the driver has none for them.
  const TensorMap* find(const PoolRows& rows) {
    auto known = maps_.find(rows);
    if (known != maps_.end()) return &known->second;
    TensorMap map;
    return encode(rows, map) ? &maps_.emplace(rows, map).first->second : nullptr;
  }

 private:
  // No kernel asks for rows outside the pool, so the map need not know how many there are.
  bool encode(const PoolRows& rows, TensorMap& map) const {
    constexpr cuuint64_t kRowsMax = cuuint64_t{1} << 31;
    if (encoder_ == nullptr) return false;
    auto width = static_cast<cuuint64_t>(rows.width);
    cuuint64_t sizes[2] = {width, kRowsMax}, row_bytes[1] = {width * 2};
    cuuint32_t box[2] = {kTileRowBytes / 2, static_cast<cuuint32_t>(rows.box_rows)};
    cuuint32_t steps[2] = {1, 1};
    CUtensorMap encoded;
    CUresult result =
        encoder_(&encoded, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, const_cast<void*>(rows.pool), sizes,
                 row_bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    std::memcpy(&map, &encoded, sizeof(map));
    return result == CUDA_SUCCESS;
  }

  PFN_cuTensorMapEncodeTiled_v12000 encoder_ = tensor_map_encoder();
  std::map<PoolRows, TensorMap> maps_;
};

}  // namespace banyan::cuda::device
