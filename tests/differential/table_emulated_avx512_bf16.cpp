// The AMX table over emulated tile registers.
#include "differential/emulated_table.h"
#include "differential/emulated_tiles.h"
#include "kernels/x86/amx_gemm.h"
#include "kernels/x86/table.h"
#include "kernels/x86/vec_avx512_bf16.h"

namespace banyan::test {

constinit const KernelTable kEmulatedAmx = x86::with_tile_products<EmulatedTiles, x86::Avx512Bf16>(
    x86::with_pair_products<x86::Avx512Bf16>(x86::make_table<x86::Avx512Bf16>("emulated amx")));

}  // namespace banyan::test
