// Functions that host tests and kernels share: nvcc compiles them for both, other compilers for the
// host alone.
#pragma once

#ifdef __CUDACC__
#define BANYAN_HOST_DEVICE __host__ __device__
#else
#define BANYAN_HOST_DEVICE
#endif
