#include "kernels/vector/table.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constinit const KernelTable kAvx512 = make_table<Avx512>("avx512");

}  // namespace banyan::simd
