#include "kernels/x86/table.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/x86.h"

namespace banyan::x86 {

constinit const KernelTable kAvx512 = make_table<Avx512>("avx512");

}  // namespace banyan::x86
