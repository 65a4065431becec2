// How many tokens a step yields on average if each draft token is accepted with the same
// probability.
#pragma once

#include <cmath>

namespace banyan {

// Omega(K, a) = 1 + a + a^2 + ... + a^K = (1 - a^(K+1)) / (1 - a): the token that is drawn in any
// case, and the accepted ones of K draft tokens. K may be a mean. Omega(1, 0.9) = 1.9.
inline double expected_tokens(double acceptance, double draft_tokens) {
  if (acceptance >= 1) return 1 + draft_tokens;
  return (1 - std::pow(acceptance, draft_tokens + 1)) / (1 - acceptance);
}

}  // namespace banyan
