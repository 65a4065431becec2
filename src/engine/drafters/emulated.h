// For benchmarks: drafts that are right at a given rate, at the cost of the drafter they come from.
// An untrained head is never right, but takes as long as a trained one. Engine's thread only.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/drafters/drafter.h"

namespace banyan {

// Runs `drafter` in full, then replaces the tokens that it proposes for a recorded output
// (Sequence::recorded). Each is the recorded token with probability `rate`, and wrong otherwise.
std::unique_ptr<Drafter> emulate_acceptance_of(std::unique_ptr<Drafter> drafter, double rate,
                                               int64_t vocabulary);

}  // namespace banyan
