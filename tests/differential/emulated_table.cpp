#include "differential/emulated_table.h"

#include <algorithm>

#include "differential/kernels.h"

namespace banyan::test {

#ifdef BANYAN_X86
std::vector<const KernelTable*> tables_and_emulated() {
  static const KernelTable table = simd::with_tiles("emulated amx", kEmulatedProducts);
  std::vector<const KernelTable*> all = tables();
  if (std::ranges::count(available_kernels(), "avx512_bf16") > 0) all.push_back(&table);
  return all;
}
#else
std::vector<const KernelTable*> tables_and_emulated() {
  return tables();
}
#endif

}  // namespace banyan::test
