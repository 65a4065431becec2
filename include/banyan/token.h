// Tokens as everything that handles them sees them, kernels included.
#pragma once

#include <cstdint>

namespace banyan {

using TokenId = int32_t;

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural log, of the model's own distribution before any sampling change
};

}  // namespace banyan
