#include "kernels/x86/table.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/x86.h"

namespace banyan::x86 {

constinit const KernelTable kAvx2 = make_table<Avx2>("avx2");

}  // namespace banyan::x86
