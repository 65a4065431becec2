// The CUDA kernels as nvcc compiles them, interpreted: a kernel table over host memory.
//
// Every other launch is compared with the emulation (kernels/cuda/emulated): what it has written is
// undone and written again by the emulation, and must have the same bits. The launches between
// leave their own results, so that a result that was never written is missed by whoever launched.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/tensor_gemm.h"
#include "kernels/kernel_table.h"
#include "ptx/machine.h"

namespace banyan::ptx {

// The module that the build has made, or nullptr if it has no CUDA compiler.
const Module* cuda_module();

// Runs on cuda_module(), which must be there. A launch that is wrong throws Error.
const KernelTable& interpreted_table();

// Launches a kernel as no slot of the table does; interpreted.cpp lists them.
template <class Kernel>
void launch_interpreted(const Kernel& kernel);
// The same of a product, with weights of T.
template <class T>
void multiply_interpreted(const cuda::TensorProduct& product);

// How often each entry was launched, by its name in C++ without its namespace. Those that never
// were are there, too.
std::map<std::string, int> launches_by_entry();

}  // namespace banyan::ptx
