#include "kernels/x86/limits.h"
#include "kernels/x86/vec_avx2.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {
namespace {
constexpr ProductProbe kProducts[] = {
    {"AVX2 f32", Operand::kF32, multiply_f32<Avx2>},
    {"AVX2 int8", Operand::kInt8, multiply_bytes<Avx2>},
};
}  // namespace

constinit const LimitProbes kAvx2Limits = {kProducts, read_lines<Avx2>};

}  // namespace banyan::simd
