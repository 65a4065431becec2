// For builds without the CUDA compiler.
#include "kernels/cuda/cuda.h"

namespace banyan::cuda {

GpuTable gpu_table() {
  return {nullptr,
          "this program was built without CUDA: scripts/install_deps cuda, then "
          "scripts/build cuda"};
}

}  // namespace banyan::cuda
