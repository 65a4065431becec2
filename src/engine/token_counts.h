// Which tokens a sequence has seen, and how often, for requests with penalties: a list for the
// draw, and where each token is in it. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"

namespace banyan {

class TokenCounts {
 public:
  // Takes memory for sequences of up to `tokens_max` tokens.
  void start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary);
  void add(TokenId token);
  // Takes back the token that was added last.
  void remove(TokenId token);
  std::span<const TokenCount> seen() const { return seen_; }
  size_t seen_max() const { return seen_.capacity(); }

 private:
  int32_t size() const { return static_cast<int32_t>(seen_.size()); }
  int32_t& place(TokenId token) { return places_[static_cast<size_t>(token)]; }

  static constexpr int32_t kNowhere = -1;
  std::vector<int32_t> places_;  // [vocabulary], in seen_
  std::vector<TokenCount> seen_;
  int32_t in_prompt_ = 0;  // the number of tokens at the beginning of seen_ that the prompt has
};

}  // namespace banyan
