# The CUDA kernels as PTX, where scripts/install_deps cuda has put the compiler. If it is missing,
# the test that needs it says so.
set(nvcc ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/nvidia/cu13/bin/nvcc)
set(ptx_file "")
set(BANYAN_HAS_PTX OFF)
# Of differential_tests: together they launch every kernel (differential/coverage_test.cpp).
set(BANYAN_PTX_TESTS
  *Recurrence.ReplaysIn* *Recurrence.Tiles* Add.* AddRows.*
  Attention.AScale* Attention.InfiniteScores
  Attention.*ForEveryHeadDim Attention.NonFinite* Attention.SharpScores* BlockMaxima.*
  CombineExperts.* CopyRows.* CopyUnits.* Cuda.* DeltaGates.* Draw.OfOneCase* FollowDrafts.*
  GateMul.* GatedProducts.* Gemm.GatherReads* Gemm.GroupsNeed* Gemm.IntegerFormats* Hadamard.*
  IndexScores.AgreeWithF64 IndexScores.OfA* JoinedLaunches.* LatentAttention.OfAFewRows*
  LayerNorm.* LinearAttention.* LogitStats.* PageRead.* PageWrite.* PlaceHeads.* PooledKeys.*
  PreparedRows.* RecurrenceKernels.* RecurrenceOfHeads.* ResolveTokens.* RmsNorm.* Rope* Route.*
  Scale.* ShortConv.* SiluMul.* SortExperts.* SparseAttention.EveryTable* StateSpaceGates.*)
if(EXISTS ${nvcc} AND NOT BANYAN_SANITIZE)
  set(BANYAN_HAS_PTX ON)
  set(ptx_file ${CMAKE_CURRENT_BINARY_DIR}/cuda.ptx)
  set(ptx_forms ${CMAKE_BINARY_DIR}/wgmma)
  include(${PROJECT_SOURCE_DIR}/cmake/wgmma_forms.cmake)
  banyan_write_wgmma_forms(${ptx_forms}/kernels/cuda/device)
  set(source ${PROJECT_SOURCE_DIR}/src/kernels/cuda/device/cuda.cu)
  add_custom_command(OUTPUT ${ptx_file}
    COMMAND ${nvcc} -ptx -arch=sm_90a -std=c++20 --fmad=false --expt-relaxed-constexpr
            -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include -I${ptx_forms}
            -MD -MF ${ptx_file}.d -o ${ptx_file} ${source}
    DEPENDS ${source}
    DEPFILE ${ptx_file}.d
    COMMENT "Compiling the CUDA kernels to PTX"
    VERBATIM)
  add_custom_target(cuda_ptx DEPENDS ${ptx_file})
  add_dependencies(ptx_interpreter cuda_ptx)
endif()
set_source_files_properties(ptx/cuda_module.cpp PROPERTIES
  COMPILE_DEFINITIONS "BANYAN_PTX=\"${ptx_file}\"" SKIP_UNITY_BUILD_INCLUSION ON)
