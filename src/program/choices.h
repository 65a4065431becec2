// Which of several texts a model would rather write, by the logprobs of their tokens.
//
// The methods are SGLang's, so that its programs choose the same.
#pragma once

#include <vector>

#include "program/backend.h"

namespace banyan {

struct Decision {
  size_t best = 0;              // the first of equals
  std::vector<double> weights;  // by the method
};

// `texts` is not empty and each has a token; for kUnconditionalNormalized each has `unconditional`.
Decision decide(const std::vector<ScoredText>& texts, ChoiceMethod method);

}  // namespace banyan
