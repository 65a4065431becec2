#include "kernels/x86/limits.h"
#include "kernels/x86/vec_avx512.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {
namespace {
constexpr ProductProbe kProducts[] = {
    {"AVX-512 f32", Operand::kF32, multiply_f32<Avx512>},
    {"AVX-512 int8", Operand::kInt8, multiply_bytes<Avx512>},
};
}  // namespace

constinit const LimitProbes kAvx512Limits = {kProducts, read_lines<Avx512>};

}  // namespace banyan::simd
