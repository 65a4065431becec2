// Launches one CUDA kernel as no slot of a table does: emulated, or interpreted.
#pragma once

#include "differential/kernels.h"
#include "kernels/cuda/emulated/device.h"
#include "kernels/cuda/emulated/emulated.h"
#include "ptx/interpreted.h"

namespace banyan::test {

template <class Kernel>
void launch_on_cuda(const Kernel& kernel) {
  if (&cuda_table() == &cuda::emulated::table()) {
    cuda::emulated::Device::launch(nullptr, kernel);
  } else {
    ptx::launch_interpreted(kernel);
  }
}

// A product whose rows are rounded.
template <class T>
void multiply_on_cuda(const cuda::TensorProduct& product) {
  if (&cuda_table() == &cuda::emulated::table()) {
    cuda::emulated::Device::multiply_tiles<T>(product);
  } else {
    ptx::multiply_interpreted<T>(product);
  }
}

}  // namespace banyan::test
