// Token types shared by all layers, kernels included.
#pragma once

#include <cstdint>

namespace banyan {

using TokenId = int32_t;

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;  // natural log, from the model's own distribution before sampling changes it
};

}  // namespace banyan
