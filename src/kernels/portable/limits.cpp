// The limits of plain C++, as compiled in this build.
#include "kernels/limits.h"

#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

double multiply_chains(int64_t rounds) {
  constexpr int kChains = 16;
  float sums[kChains] = {};
  // Volatile, so that the compiler cannot compute the sums.
  volatile float given = 1;
  float x = given;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (float& sum : sums) sum = sum * x + x;
  }
  for (float sum : sums) given = sum;
  return 2.0 * kChains * rounds;
}

void read_lines(const std::byte* data, size_t bytes, size_t ahead) {
  constexpr size_t kLine = 64;
  uint64_t sums[kLine / sizeof(uint64_t)] = {};
  for (size_t i = 0; i < bytes; i += kLine) {
    if (ahead > 0) __builtin_prefetch(data + i + ahead);
    const auto* words = reinterpret_cast<const uint64_t*>(data + i);
    for (uint64_t& sum : sums) sum += *words++;
  }
  volatile uint64_t used = 0;
  for (uint64_t sum : sums) used = sum;
  (void)used;
}

constexpr ProductProbe kProducts[] = {{"plain C++ f32", Operand::kF32, multiply_chains}};
constexpr LimitProbes kLimits = {kProducts, read_lines};

}  // namespace

const LimitProbes& limit_probes() {
  return kLimits;
}

}  // namespace banyan::portable
