#include "kernels/x86/table.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::x86 {

// Products with bf16 and fp8 weights round x to bf16.
constinit const KernelTable kAvx512Bf16 =
    with_pair_products<Avx512Bf16>(make_table<Avx512Bf16>("avx512_bf16"));

}  // namespace banyan::x86
