#include "kernels/x86/limits.h"
#include "kernels/x86/vec_avx512_bf16.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {
namespace {
constexpr ProductProbe kProducts[] = {
    {"AVX-512 f32", Operand::kF32, multiply_f32<Avx512Bf16>},
    {"AVX-512 bf16 pairs", Operand::kBF16, multiply_bf16<Avx512Bf16>},
    {"AVX-512 int8 (VNNI)", Operand::kInt8, multiply_bytes<Avx512Bf16>},
};
}  // namespace

constinit const LimitProbes kAvx512Bf16Limits = {kProducts, read_lines<Avx512Bf16>};

}  // namespace banyan::simd
