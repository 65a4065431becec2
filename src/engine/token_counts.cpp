#include "engine/token_counts.h"

#include <algorithm>

#include "base/check.h"

namespace banyan {

void TokenCounts::start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary) {
  places_.assign(static_cast<size_t>(vocabulary), kNowhere);
  seen_.clear();
  seen_.reserve(static_cast<size_t>(std::min(tokens_max, vocabulary)));
  for (TokenId token : prompt) {
    if (place(token) != kNowhere) continue;
    place(token) = size();
    seen_.push_back({.token = token, .in_output = 0});
  }
  in_prompt_ = size();
}

void TokenCounts::add(TokenId token) {
  if (place(token) == kNowhere) {
    place(token) = size();
    seen_.push_back({.token = token, .in_output = 0});
  }
  ++seen_[static_cast<size_t>(place(token))].in_output;
}

void TokenCounts::remove(TokenId token) {
  int32_t at = place(token);
  CHECK(at != kNowhere && seen_[static_cast<size_t>(at)].in_output > 0, "token {} was not added",
        token);
  if (--seen_[static_cast<size_t>(at)].in_output > 0 || at < in_prompt_) return;
  CHECK(at + 1 == size(), "token {} is not the one added last", token);
  seen_.pop_back();
  place(token) = kNowhere;
}

}  // namespace banyan
