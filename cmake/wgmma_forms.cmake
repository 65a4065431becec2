# wgmma_forms.cuh: wgmma of every width, for kernels/cuda/device/wgmma.cuh. The operands of an
# instruction are text, so that no template can count them.
function(banyan_write_wgmma_forms folder)
  set(forms "// Made by cmake/wgmma_forms.cmake.\n#pragma once\n")
  foreach(n RANGE 8 256 8)
    math(EXPR count "${n} / 2")
    math(EXPR n_16 "${n} % 16")  # integers have fewer widths
    set(places "%0")
    set(operands "\"+f\"(d[0])")
    math(EXPR last "${count} - 1")
    foreach(i RANGE 1 ${last})
      string(APPEND places ", %${i}")
      string(APPEND operands ", \"+f\"(d[${i}])")
    endforeach()
    math(EXPR b "${count} + 1")
    math(EXPR keep_shared "${count} + 2")
    math(EXPR a3 "${count} + 3")
    math(EXPR a1 "${count} + 1")
    math(EXPR a2 "${count} + 2")
    math(EXPR b_registers "${count} + 4")
    math(EXPR keep_registers "${count} + 5")
    math(EXPR transposed "${count} + 6")
    string(REPLACE "+f" "+r" integer_operands "${operands}")
    foreach(element BFloat16 Float16)
      set(type bf16.bf16)
      if(element STREQUAL Float16)
        set(type f16.f16)
      endif()
      string(APPEND forms "
template <>
struct Wgmma<${n}, ${element}> {
  static __device__ void shared(float (&d)[${count}], uint64_t a, uint64_t b, int keep) {
    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %${keep_shared}, 0; \"
                 \"wgmma.mma_async.sync.aligned.m64n${n}k16.f32.${type} {${places}}, \"
                 \"%${count}, %${b}, p, 1, 1, 0, 0; }\"
                 : ${operands} : \"l\"(a), \"l\"(b), \"r\"(keep));
  }
  // transposed: b is [16, n].
  template <int transposed>
  static __device__ void registers(float (&d)[${count}], const uint32_t (&a)[4], uint64_t b,
                                   int keep) {
    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %${keep_registers}, 0; \"
                 \"wgmma.mma_async.sync.aligned.m64n${n}k16.f32.${type} {${places}}, \"
                 \"{%${count}, %${a1}, %${a2}, %${a3}}, %${b_registers}, p, 1, 1, %${transposed}; }\"
                 : ${operands}
                 : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(keep),
                   \"n\"(transposed));
  }
};
")
    endforeach()
    if(n GREATER 32 AND NOT n EQUAL 48 AND n_16)
      continue()
    endif()
    string(APPEND forms "
template <>
struct IntegerWgmma<${n}> {
  static __device__ void registers(int32_t (&d)[${count}], const uint32_t (&a)[4], uint64_t b,
                                   int keep) {
    asm volatile(\"{ .reg .pred p; setp.ne.b32 p, %${keep_registers}, 0; \"
                 \"wgmma.mma_async.sync.aligned.m64n${n}k32.s32.s8.s8 {${places}}, \"
                 \"{%${count}, %${a1}, %${a2}, %${a3}}, %${b_registers}, p; }\"
                 : ${integer_operands}
                 : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"r\"(keep));
  }
};
")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/wgmma_forms.cuh CONTENT "${forms}" @ONLY)
endfunction()
