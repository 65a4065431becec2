#include "differential/emulated_table.h"

#include "differential/kernels.h"

namespace banyan::test {

#if BANYAN_X86_LEVEL >= 4
std::vector<const KernelTable*> tables_and_emulated() {
  std::vector<const KernelTable*> all = tables();
  if (auto avx512_bf16 = select_kernels("avx512_bf16")) {
    static const KernelTable table =
        simd::with_tiles(**avx512_bf16, "emulated amx", kEmulatedProducts);
    all.push_back(&table);
  }
  return all;
}
#else
std::vector<const KernelTable*> tables_and_emulated() {
  return tables();
}
#endif

}  // namespace banyan::test
