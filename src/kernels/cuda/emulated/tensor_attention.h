// Attention over pages of bf16, f16 or quantised rows with the bits of a GPU
// (kernels/cuda/tensor_attention.h), on the host.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::cuda::emulated {

void attend_tiles(const AttentionArgs& args);

}  // namespace banyan::cuda::emulated
