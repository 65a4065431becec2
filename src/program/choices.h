// Selects which of several texts the model prefers, from the logprobs of their tokens.
//
// The methods are SGLang's, so that its programs make the same choices.
//
// Stateless; thread-safe.
#pragma once

#include <vector>

#include "program/backend.h"

namespace banyan {

struct Decision {
  size_t best = 0;              // the first on ties
  std::vector<double> weights;  // scores by the method
};

// Requires: `texts` is not empty and each has a token; with kUnconditionalNormalized each has
// `unconditional`.
Decision decide(const std::vector<ScoredText>& texts, ChoiceMethod method);

}  // namespace banyan
