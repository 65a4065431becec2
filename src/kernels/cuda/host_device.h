// Marks functions for the device: nvcc compiles kernels for it, other compilers for the emulation.
// Loops over arrays that belong in registers must be unrolled.
#pragma once

#ifdef __CUDACC__
#define BANYAN_HOST_DEVICE __host__ __device__
#define BANYAN_DEVICE __device__
#else
#define BANYAN_HOST_DEVICE
#define BANYAN_DEVICE
#endif
#ifdef __CUDA_ARCH__
#define BANYAN_UNROLL _Pragma("unroll")
#define BANYAN_NO_UNROLL _Pragma("unroll 1")
#elif defined(__CUDACC__)  // for the host, which runs no kernel
#define BANYAN_UNROLL
#define BANYAN_NO_UNROLL
#else
#define BANYAN_UNROLL _Pragma("GCC unroll 8")
#define BANYAN_NO_UNROLL
#endif
