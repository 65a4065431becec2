// Counts the tokens of a sequence, or its last ones, for requests with penalties: a list for the
// sampler and an index into it. Owned by the sequence; engine's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/signed.h"
#include "kernels/kernel_table.h"

namespace banyan {

class TokenCounts {
 public:
  // Reserves memory for sequences of up to `tokens_max` tokens, of which the last `window` count;
  // -1: all.
  void start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary,
             int64_t window = -1);
  void add(TokenId token);
  // Undoes the last add().
  void remove(TokenId token);
  // In no particular order.
  std::span<const TokenCount> seen() const { return seen_; }
  size_t seen_max() const { return seen_.capacity(); }

 private:
  int32_t size() const { return static_cast<int32_t>(seen_.size()); }
  int32_t& place(TokenId token) { return at(places_, token); }
  void change(TokenId token, bool in_prompt, int32_t by);
  // The token that leaves the window when another one comes, or that came back when one went.
  void change_first(int32_t by);

  static constexpr int32_t kNowhere = -1;
  std::vector<int32_t> places_;  // [vocabulary], index into seen_
  std::vector<TokenCount> seen_;
  std::vector<int32_t> in_prompt_;  // of each entry of seen_
  // With a window: all tokens, and how many of them are the prompt's.
  std::vector<TokenId> tokens_;
  int64_t prompt_tokens_ = 0;
  int64_t window_ = -1;
};

}  // namespace banyan
