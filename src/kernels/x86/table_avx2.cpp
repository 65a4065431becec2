#include "kernels/vector/table.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constinit const KernelTable kAvx2 = make_table<Avx2>("avx2");

}  // namespace banyan::simd
