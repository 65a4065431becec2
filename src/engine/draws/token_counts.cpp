#include "engine/draws/token_counts.h"

#include <algorithm>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

void TokenCounts::start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary,
                        int64_t window) {
  CHECK(window == -1 || window > 0, "a window of {}", window);
  window_ = window;
  places_.assign(as_size(vocabulary), kNowhere);
  seen_.clear();
  in_prompt_.clear();
  size_t most = as_size(std::min(tokens_max, vocabulary));
  if (window_ > 0) most = std::min(most, as_size(window_));
  seen_.reserve(most);
  in_prompt_.reserve(most);
  tokens_.clear();
  prompt_tokens_ = std::ssize(prompt);
  if (window_ > 0) {
    tokens_.reserve(as_size(tokens_max));
    tokens_.assign(prompt.begin(), prompt.end());
    prompt = prompt.last(std::min(prompt.size(), as_size(window_)));
  }
  for (TokenId token : prompt) change(token, /*in_prompt=*/true, 1);
}

void TokenCounts::add(TokenId token) {
  if (window_ > 0) {
    change_first(-1);
    tokens_.push_back(token);
  }
  change(token, /*in_prompt=*/false, 1);
}

void TokenCounts::remove(TokenId token) {
  change(token, /*in_prompt=*/false, -1);
  if (window_ < 0) return;
  CHECK(tokens_.back() == token, "token {} is not the one added last", token);
  tokens_.pop_back();
  change_first(1);
}

void TokenCounts::change_first(int32_t by) {
  int64_t first = std::ssize(tokens_) - window_;
  if (first >= 0) change(at(tokens_, first), first < prompt_tokens_, by);
}

void TokenCounts::change(TokenId token, bool in_prompt, int32_t by) {
  if (place(token) == kNowhere) {
    place(token) = size();
    seen_.push_back({.token = token, .in_output = 0});
    in_prompt_.push_back(0);
  }
  int32_t index = place(token);
  TokenCount& entry = at(seen_, index);
  int32_t& count = in_prompt ? at(in_prompt_, index) : entry.in_output;
  count += by;
  CHECK(count >= 0, "token {} was not added", token);
  if (entry.in_output > 0 || at(in_prompt_, index) > 0) return;
  place(seen_.back().token) = index;  // the last entry takes the place of this one
  entry = seen_.back();
  at(in_prompt_, index) = in_prompt_.back();
  seen_.pop_back();
  in_prompt_.pop_back();
  place(token) = kNowhere;
}

}  // namespace banyan
