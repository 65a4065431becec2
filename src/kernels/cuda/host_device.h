// Marks functions shared by host tests and kernels: nvcc compiles them for both, other compilers
// for the host only.
#pragma once

#ifdef __CUDACC__
#define BANYAN_HOST_DEVICE __host__ __device__
#else
#define BANYAN_HOST_DEVICE
#endif
