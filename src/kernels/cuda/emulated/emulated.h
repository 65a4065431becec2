// The CUDA kernels on the host: the same source as on a GPU, over host memory, run when they are
// launched. `--kernels cuda_emulated` is these kernels on the fenced device (fenced/fenced.h).
#pragma once

#include "kernels/kernel_table.h"

namespace banyan::cuda::emulated {

const KernelTable& table();

}  // namespace banyan::cuda::emulated
