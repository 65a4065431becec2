#include "base/random.h"

namespace banyan {

double uniform(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  std::array<uint32_t, 4> words = philox(key, counter_low, counter_high);
  uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return bits * 0x1p-53;
}

}  // namespace banyan
