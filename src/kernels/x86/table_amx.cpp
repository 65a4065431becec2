#include "kernels/x86/amx_gemm.h"
#include "kernels/x86/table.h"
#include "kernels/x86/tiles_amx.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::x86 {

constinit const KernelTable kAmx = with_tile_products<AmxTiles, Avx512Bf16>(
    with_pair_products<Avx512Bf16>(make_table<Avx512Bf16>("amx")));

}  // namespace banyan::x86
