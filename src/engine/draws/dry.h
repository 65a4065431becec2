// The DRY penalty of p-e-w ("don't repeat yourself"), as in llama.cpp. It lowers the logit of a
// token that would extend a repetition, more for longer ones. A pure function of the tokens before
// the position.
//
// A repetition of length n: the last n tokens also occur earlier, followed by the penalised token.
// All are found in one pass, with the Z function of the reversed tokens. One object per sequence;
// engine's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/request.h"
#include "kernels/kernel_table.h"

namespace banyan {

class DryPenalties {
 public:
  // Reserves memory for sequences of up to `tokens_max` tokens.
  void start(const SamplingParams& params, int64_t tokens_max);
  // Upper bound on penalised tokens per position.
  size_t penalised_max() const { return repeats_.capacity(); }
  // Appends the penalties for the position after `tokens` and `draft` as biases, one per token.
  void append(const SamplingParams& params, std::span<const TokenId> tokens,
              std::span<const TokenId> draft, std::vector<TokenBias>& biases);

 private:
  struct Repeat {
    TokenId next = 0;  // the token that would extend it
    int32_t tokens = 0;
  };

  void find_lengths();
  int64_t length_allowed(const DryBreakers& breakers) const;

  std::vector<TokenId> reversed_;  // the tokens considered, last one first
  std::vector<int32_t> lengths_;   // Z function: length of the match with the start
  std::vector<Repeat> repeats_;
};

}  // namespace banyan
