#include "engine/draws/token_counts.h"

#include <algorithm>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

void TokenCounts::start(std::span<const TokenId> prompt, int64_t tokens_max, int64_t vocabulary) {
  places_.assign(as_size(vocabulary), kNowhere);
  seen_.clear();
  seen_.reserve(as_size(std::min(tokens_max, vocabulary)));
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
  ++at(seen_, place(token)).in_output;
}

void TokenCounts::remove(TokenId token) {
  int32_t index = place(token);
  CHECK(index != kNowhere && at(seen_, index).in_output > 0, "token {} was not added", token);
  if (--at(seen_, index).in_output > 0 || index < in_prompt_) return;
  CHECK(index + 1 == size(), "token {} is not the one added last", token);
  seen_.pop_back();
  place(token) = kNowhere;
}

}  // namespace banyan
