# The CUDA compiler, for Hopper. nvcc takes C++20 at most: what .cu files include stays that.
set(CMAKE_CUDA_COMPILER ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/nvidia/cu13/bin/nvcc CACHE FILEPATH
    "From scripts/install_deps cuda, unless named")
set(CMAKE_CUDA_ARCHITECTURES 90a-real)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # which CMake 3.25 does not know

# In place of the options of the C++ compiler, which nvcc does not take. Products and sums are fused
# only where a kernel says so, and constexpr functions are for a GPU, too.
set(BANYAN_CUDA_OPTIONS -lineinfo --fmad=false --expt-relaxed-constexpr
    -Xcompiler=-Wall,-Wextra,-Wno-missing-field-initializers -Werror=all-warnings)

include(${CMAKE_CURRENT_LIST_DIR}/wgmma_forms.cmake)
set(BANYAN_WGMMA_FORMS ${CMAKE_BINARY_DIR}/wgmma)  # a folder to include from
banyan_write_wgmma_forms(${BANYAN_WGMMA_FORMS}/kernels/cuda/device)
