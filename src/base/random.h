// Counter-based randomness: a value is a function of its key and counter, never of a stream, so it
// does not matter what was drawn before it.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace banyan {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high);

// Uniform in [0, 1), on the grid of 2^-53.
double uniform(uint64_t key, uint64_t counter_low, uint64_t counter_high);

}  // namespace banyan
