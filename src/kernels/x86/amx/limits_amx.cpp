#include "kernels/x86/amx/tiles.h"
#include "kernels/x86/limits.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {
namespace {
constexpr ProductProbe kProducts[] = {
    {"AVX-512 f32", Operand::kF32, multiply_f32<Avx512Bf16>},
    {"AMX bf16, tiles in L1", Operand::kBF16, multiply_tiles<AmxTiles, false, kStepsInL1>},
    {"AMX bf16, tiles in L2", Operand::kBF16, multiply_tiles<AmxTiles, false, kStepsInL2>},
    {"AMX int8, tiles in L1", Operand::kInt8, multiply_tiles<AmxTiles, true, kStepsInL1>},
    {"AMX int8, tiles in L2", Operand::kInt8, multiply_tiles<AmxTiles, true, kStepsInL2>},
};
}  // namespace

constinit const LimitProbes kAmxLimits = {kProducts, read_lines<Avx512Bf16>};

}  // namespace banyan::simd
