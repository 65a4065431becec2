// A random constraint for tests: what it allows, forces and proposes is a function of its seed and
// of the tokens so far.
#pragma once

#include <span>
#include <vector>

#include "banyan/request.h"
#include "base/check.h"

namespace banyan::test {

class Chance final : public TokenConstraint {
 public:
  // Only uses tokens below `vocabulary`.
  Chance(uint64_t seed, int vocabulary)
      : vocabulary_(static_cast<uint64_t>(vocabulary)), states_{mix(seed, 0)} {}

  void fill_mask(std::span<uint32_t> mask) override {
    for (uint32_t word : mask) CHECK(word == 0, "the mask comes cleared");
    for (uint64_t t = 0; t < vocabulary_; ++t) {
      if (allows(states_.back(), t)) mask[t / 32] |= 1u << (t % 32);
    }
  }
  void accept(TokenId token) override {
    CHECK(allows(states_.back(), static_cast<uint64_t>(token)), "token {}", token);
    states_.push_back(mix(states_.back(), static_cast<uint64_t>(token)));
  }
  // Proposes what is forced, guesses at choices, and occasionally nonsense.
  std::span<const TokenId> draft_tokens() override {
    drafts_.clear();
    uint64_t state = states_.back();
    while (drafts_.size() < 40) {
      uint64_t chance = state >> 40;
      if (kind(state) == Kind::kChoice && chance % 3 != 0) break;
      uint64_t token = chance % 16 == 0 ? chance % vocabulary_ : first(state);
      drafts_.push_back(static_cast<TokenId>(token));
      state = mix(state, token);
    }
    return drafts_;
  }
  void rollback(int tokens) override {
    states_.resize(states_.size() - static_cast<size_t>(tokens));
  }

 private:
  enum class Kind : uint8_t { kForced, kChoice, kNothing };

  static uint64_t mix(uint64_t state, uint64_t value) {
    uint64_t x = (state ^ value) * 0x9e3779b97f4a7c15u + 1;
    return (x ^ x >> 29) * 0xbf58476d1ce4e5b9u ^ x >> 32;
  }
  static Kind kind(uint64_t state) {
    uint64_t percent = state % 100;
    return percent < 60 ? Kind::kForced : percent < 99 ? Kind::kChoice : Kind::kNothing;
  }
  // A choice is between few tokens or many.
  static uint64_t stride(uint64_t state) { return 1 + (state >> 20) % 48; }
  uint64_t first(uint64_t state) const {
    return (state >> 8) % (kind(state) == Kind::kForced ? vocabulary_ : stride(state));
  }
  bool allows(uint64_t state, uint64_t token) const {
    if (kind(state) == Kind::kNothing) return false;
    if (kind(state) == Kind::kForced) return token == first(state);
    return token % stride(state) == first(state);
  }

  uint64_t vocabulary_;
  std::vector<uint64_t> states_;  // before the first token and after each
  std::vector<TokenId> drafts_;
};

}  // namespace banyan::test
