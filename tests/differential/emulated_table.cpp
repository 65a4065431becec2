#include "differential/emulated_table.h"

#include <algorithm>

#include "kernels/select.h"

namespace banyan::test {

#ifdef BANYAN_X86
const KernelTable* emulated_amx() {
  static const KernelTable table = x86::with_tiles("emulated amx", kEmulatedProducts);
  return std::ranges::count(available_kernels(), "avx512_bf16") > 0 ? &table : nullptr;
}
#else
const KernelTable* emulated_amx() {
  return nullptr;
}
#endif

}  // namespace banyan::test
