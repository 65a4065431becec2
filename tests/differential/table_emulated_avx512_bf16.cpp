// The products of AMX over emulated tile registers.
#include "differential/emulated_table.h"
#include "differential/emulated_tiles.h"
#include "kernels/x86/amx/attention.h"
#include "kernels/x86/amx/gemm.h"
#include "kernels/x86/amx/latent_attention.h"
#include "kernels/x86/vec_avx512_bf16.h"

namespace banyan::test {

constinit const x86::TileProducts kEmulatedProducts =
    x86::with_tile_attention<EmulatedTiles, x86::Avx512Bf16>(
        x86::with_latent_tiles<EmulatedTiles, x86::Avx512Bf16>(
            x86::tile_products<EmulatedTiles, x86::Avx512Bf16>()));

}  // namespace banyan::test
