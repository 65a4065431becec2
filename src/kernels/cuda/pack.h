// Packs matrices on the host for the kernels of this folder (weights.h).
#pragma once

#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

template <Format F>
void pack_weights(const PackArgs& args);

}  // namespace banyan::cuda
