// Counter-based random numbers: a value is a function of its key and counter and does not depend on
// earlier draws.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace banyan {

constexpr std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low,
                                         uint64_t counter_high) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  constexpr int kRounds = 10;
  auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  std::array<uint32_t, 4> c = {low(counter_low), high(counter_low), low(counter_high),
                               high(counter_high)};
  uint32_t k0 = low(key), k1 = high(key);
  for (int round = 0; round < kRounds; ++round) {
    uint64_t product0 = uint64_t{kMultiplier0} * c[0];
    uint64_t product1 = uint64_t{kMultiplier1} * c[2];
    c = {high(product1) ^ c[1] ^ k0, low(product1), high(product0) ^ c[3] ^ k1, low(product0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

// Uniform in [0, 1), a multiple of 2^-53.
double uniform(uint64_t key, uint64_t counter_low, uint64_t counter_high);

}  // namespace banyan
