// tensor/float_types.h for code on a GPU, too: kernels of a .cu file include this first.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// nvcc lets device code call what is marked for it, or constexpr; these are plain inline functions.
#pragma push_macro("inline")
#define inline inline __host__ __device__
#include "tensor/float_types.h"
#pragma pop_macro("inline")
