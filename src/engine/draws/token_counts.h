// Counts the tokens of a sequence, for requests with penalties: a list for the sampler and an index
// into it. Owned by the sequence; engine's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/signed.h"
#include "kernels/kernel_table.h"

namespace banyan {

class TokenCounts {
 public:
  // Reserves memory for sequences of up to `tokens_max` tokens.
  void start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary);
  void add(TokenId token);
  // Undoes the last add().
  void remove(TokenId token);
  std::span<const TokenCount> seen() const { return seen_; }
  size_t seen_max() const { return seen_.capacity(); }

 private:
  int32_t size() const { return static_cast<int32_t>(seen_.size()); }
  int32_t& place(TokenId token) { return at(places_, token); }

  static constexpr int32_t kNowhere = -1;
  std::vector<int32_t> places_;  // [vocabulary], index into seen_
  std::vector<TokenCount> seen_;
  int32_t in_prompt_ = 0;  // the first in_prompt_ entries of seen_ occur in the prompt
};

}  // namespace banyan
