#include "kernels/x86/amx/attention.h"
#include "kernels/x86/amx/gemm.h"
#include "kernels/x86/amx/latent_attention.h"
#include "kernels/x86/amx/tiles.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constinit const TileProducts kAmxProducts = with_tile_attention<AmxTiles, Avx512Bf16>(
    with_latent_tiles<AmxTiles, Avx512Bf16>(tile_products<AmxTiles, Avx512Bf16>()));

}  // namespace banyan::simd
