#include "kernels/x86/x86.h"

namespace banyan::x86 {

// The compiler's run-time library reads cpuid, and xgetbv for the registers that the operating
// system saves.
std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables;
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("f16c");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  bool bf16 =
      avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  if (avx2) tables.push_back(&kAvx2);
  if (avx512) tables.push_back(&kAvx512);
  if (bf16) tables.push_back(&kAvx512Bf16);
  return tables;
}

}  // namespace banyan::x86
