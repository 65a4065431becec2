// The DRY penalty of p-e-w ("don't repeat yourself", as in llama.cpp): a token that would prolong a
// repetition loses the more of its logit, the longer the repetition is. A function of the tokens
// before the position alone.
//
// A repetition of n tokens: the last n tokens are also somewhere before, followed by the token that
// is to lose. All of them are found in one pass, as the Z function of the tokens read backwards.
// One per sequence; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/request.h"
#include "kernels/kernel_table.h"

namespace banyan {

class DryPenalties {
 public:
  // Takes memory for sequences of up to `tokens_max` tokens.
  void start(const SamplingParams& params, int64_t tokens_max);
  // Tokens that may be penalised at once, at most.
  size_t penalised_max() const { return repeats_.capacity(); }
  // Adds what the token after `tokens` and then `draft` loses, as biases, each token once.
  void append(const SamplingParams& params, std::span<const TokenId> tokens,
              std::span<const TokenId> draft, std::vector<TokenBias>& biases);

 private:
  struct Repeat {
    TokenId next = 0;  // the token that would prolong it
    int32_t tokens = 0;
  };

  void find_lengths();
  int64_t length_allowed(const DryBreakers& breakers) const;

  std::vector<TokenId> reversed_;  // the tokens that are looked at, the last one first
  std::vector<int32_t> lengths_;   // of what begins at each of them and is there at the front too
  std::vector<Repeat> repeats_;
};

}  // namespace banyan
