#include "kernels/vector/table.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

// Products with bf16 and fp8 weights round x to bf16.
constinit const PairProducts kAvx512Bf16Products = pair_products<Avx512Bf16>();

}  // namespace banyan::simd
