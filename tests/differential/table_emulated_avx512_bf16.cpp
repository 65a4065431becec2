// The products of AMX over emulated tile registers.
#include "differential/emulated_table.h"
#include "differential/emulated_tiles.h"
#include "kernels/x86/amx/attention.h"
#include "kernels/x86/amx/gemm.h"
#include "kernels/x86/amx/latent_attention.h"
#include "kernels/x86/vec_avx512_bf16.h"

namespace banyan::test {

constinit const simd::TileProducts kEmulatedProducts =
    simd::with_tile_attention<EmulatedTiles, simd::Avx512Bf16>(
        simd::with_latent_tiles<EmulatedTiles, simd::Avx512Bf16>(
            simd::tile_products<EmulatedTiles, simd::Avx512Bf16>()));

}  // namespace banyan::test
