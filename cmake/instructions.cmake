# BANYAN_X86_LEVELS: the instruction sets that kernels are compiled for, in the order of
# src/kernels/x86/x86.cpp; none on other processors. With BANYAN_NATIVE, AVX2 and those that this
# machine has. BANYAN_X86_LEVEL is their number.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(BANYAN_X86_LEVELS avx2 avx512 avx512_vnni avx512_bf16 amx)
endif()
set(flags_of_avx512 avx512f avx512bw avx512dq avx512vl)
set(flags_of_avx512_vnni avx512_vnni)
set(flags_of_avx512_bf16 avx512_bf16)
set(flags_of_amx amx_tile amx_bf16 amx_int8)

if(BANYAN_NATIVE AND BANYAN_X86_LEVELS)
  file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
  separate_arguments(processor)
  foreach(level avx512 avx512_vnni avx512_bf16 amx)
    foreach(flag ${flags_of_${level}})
      if(NOT flag IN_LIST processor)
        set(left_out ON)  # and all that follow
      endif()
    endforeach()
    if(left_out)
      list(REMOVE_ITEM BANYAN_X86_LEVELS ${level})
    endif()
  endforeach()
endif()
list(LENGTH BANYAN_X86_LEVELS BANYAN_X86_LEVEL)
