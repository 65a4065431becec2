#include "kernels/x86/limits.h"
#include "kernels/x86/vec_avx512_vnni.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {
namespace {
constexpr ProductProbe kProducts[] = {
    {"AVX-512 f32", Operand::kF32, multiply_f32<Avx512Vnni>},
    {"AVX-512 int8 (VNNI)", Operand::kInt8, multiply_bytes<Avx512Vnni>},
};
}  // namespace

constinit const LimitProbes kAvx512VnniLimits = {kProducts, read_lines<Avx512Vnni>};

}  // namespace banyan::simd
