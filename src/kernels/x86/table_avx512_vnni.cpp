#include "kernels/vector/table.h"
#include "kernels/x86/vec_avx512_vnni.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constinit const ByteProducts kAvx512VnniProducts = byte_products<Avx512Vnni>();

}  // namespace banyan::simd
