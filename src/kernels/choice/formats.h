// The weight formats for which a kernel table is chosen: those of all matrix products.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/block_forms.h"
#include "kernels/kernel_table.h"

namespace banyan {

struct GemmFormat {
  std::string_view name;  // as quant/formats.h names it
  GemmKernel KernelTable::* kernel;
  size_t element_bytes;  // the group size to probe; 0: the whole row
  int64_t group;         // that is probed; 0: the row
};

inline constexpr std::array<GemmFormat, 14> kGemmFormats = {{
    {"f32", &KernelTable::gemm_f32, 4, 0},
    {"bf16", &KernelTable::gemm_bf16, 2, 0},
    {"f16", &KernelTable::gemm_f16, 2, 0},
    {"int8", &KernelTable::gemm_int8, 1, 0},
    {"int4", &KernelTable::gemm_int4, 1, 32},
    {"uint4", &KernelTable::gemm_uint4, 1, 32},
    {"mxfp4", &KernelTable::gemm_mxfp4, 1, 32},
    {"fp8", &KernelTable::gemm_fp8, 1, 128},
    {"q2", &KernelTable::gemm_q2, 1, kLevelledGroup},
    {"q3", &KernelTable::gemm_q3, 1, kLevelledGroup},
    {"q4", &KernelTable::gemm_q4, 1, kLevelledGroup},
    {"q5", &KernelTable::gemm_q5, 1, kLevelledGroup},
    {"q6", &KernelTable::gemm_q6, 1, kLevelledGroup},
    {"iq4", &KernelTable::gemm_iq4, 1, kLevelledGroup},
}};

// The name of a table for each of these formats.
using TableNames = std::array<std::string, kGemmFormats.size()>;

}  // namespace banyan
