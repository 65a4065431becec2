#include "engine/draws/dry.h"

#include <algorithm>
#include <limits>

#include "base/signed.h"

namespace banyan {
namespace {

// Uses multiplications only, so that the result does not depend on the math library.
double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

const std::vector<std::vector<TokenId>>* tails_of(const DryBreakers& breakers, TokenId token) {
  auto at = breakers.find(token);
  return at == breakers.end() ? nullptr : &at->second;
}

bool breaks_alone(const DryBreakers& breakers, TokenId token) {
  const auto* tails = tails_of(breakers, token);
  return tails != nullptr &&
         std::ranges::any_of(*tails, [](const auto& tail) { return tail.empty(); });
}

}  // namespace

void DryPenalties::start(const SamplingParams& params, int64_t tokens_max) {
  auto most = as_size(tokens_max);
  if (params.dry_penalty_last_n >= 0) {
    most = std::min(most, as_size(params.dry_penalty_last_n));
  }
  reversed_.reserve(most);
  lengths_.reserve(most);
  repeats_.reserve(most);
}

// The Z function: lengths_[k] is the length of the longest common prefix of the tokens from k and
// from 0 (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.4). [left, right) is the match
// that extends furthest.
void DryPenalties::find_lengths() {
  size_t count = reversed_.size();
  lengths_.assign(count, 0);
  for (size_t k = 1, left = 0, right = 0; k < count; ++k) {
    size_t n = k < right ? std::min<size_t>(lengths_[k - left], right - k) : 0;
    while (k + n < count && reversed_[n] == reversed_[k + n]) ++n;
    lengths_[k] = static_cast<int32_t>(n);
    if (k + n > right) {
      left = k;
      right = k + n;
    }
  }
}

// The number of tokens after the last sequence breaker. If several begin at the same token the
// longest applies.
int64_t DryPenalties::length_allowed(const DryBreakers& breakers) const {
  auto count = std::ssize(reversed_);
  for (int64_t i = 0; i < count; ++i) {
    const auto* tails = tails_of(breakers, at(reversed_, i));
    if (tails == nullptr) continue;
    int64_t longest = -1;
    for (const std::vector<TokenId>& tail : *tails) {
      auto tokens = std::ssize(tail);
      bool found = tokens > longest && tokens <= i &&
                   std::equal(tail.rbegin(), tail.rend(), reversed_.begin() + (i - tokens));
      if (found) longest = tokens;
    }
    if (longest >= 0) return i - longest;
  }
  return count;
}

void DryPenalties::append(const SamplingParams& params, std::span<const TokenId> tokens,
                          std::span<const TokenId> draft, std::vector<TokenBias>& biases) {
  size_t count = tokens.size() + draft.size();
  if (params.dry_penalty_last_n >= 0) {
    count = std::min(count, as_size(params.dry_penalty_last_n));
  }
  int64_t allowed = params.dry_allowed_length;
  if (static_cast<int64_t>(count) <= allowed) return;
  size_t drafted = std::min(count, draft.size());
  reversed_.assign(draft.rbegin(), draft.rbegin() + drafted);
  reversed_.insert(reversed_.end(), tokens.rbegin(), tokens.rbegin() + (count - drafted));
  find_lengths();
  if (*std::ranges::max_element(lengths_) < allowed) return;
  int64_t most =
      params.dry_breakers ? length_allowed(*params.dry_breakers) : static_cast<int64_t>(count);
  if (most < allowed) return;

  repeats_.clear();
  for (size_t k = 1; k < count; ++k) {
    int64_t length = std::min<int64_t>(lengths_[k], most);
    if (length >= allowed) repeats_.push_back({reversed_[k - 1], narrow<int32_t>(length)});
  }
  std::ranges::sort(repeats_, [](const Repeat& a, const Repeat& b) {
    return a.next < b.next || (a.next == b.next && a.tokens > b.tokens);
  });
  TokenId last = -1;
  for (auto [token, length] : repeats_) {
    bool breaks = params.dry_breakers && breaks_alone(*params.dry_breakers, token);
    if (token == last || breaks) continue;
    last = token;
    double penalty = params.dry_multiplier * power(params.dry_base, length - allowed);
    constexpr double kMost = std::numeric_limits<float>::max();
    biases.push_back({token, -static_cast<float>(std::min(penalty, kMost))});
  }
}

}  // namespace banyan
