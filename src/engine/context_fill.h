// For benchmarks: a prefix with random numbers as its states, so that steps after a long context
// can be timed without computing it.
#pragma once

#include <cstdint>
#include <span>

#include "banyan/status.h"
#include "engine/assemble.h"

namespace banyan {

// Caches whole pages of `tokens`, as if a request had computed them. Errors: several ranks, or a
// state that only a computation can produce (kUnsupported), more pages than there are (kExhausted).
// On the thread that owns the engine.
Status fill_context(Engine& engine, std::span<const TokenId> tokens, uint64_t seed);

}  // namespace banyan
