// A constraint for tests: allows the tokens t with t % modulus == (tokens accepted) % modulus.
#pragma once

#include <span>
#include <vector>

#include "banyan/request.h"
#include "base/check.h"

namespace banyan::test {

class Stripes final : public TokenConstraint {
 public:
  explicit Stripes(int modulus) : modulus_(modulus) {}

  void fill_mask(std::span<uint32_t> mask) override {
    for (uint32_t word : mask) CHECK(word == 0, "the mask comes cleared");
    for (size_t t = accepted.size() % modulus_; t < mask.size() * 32; t += modulus_) {
      mask[t / 32] |= 1u << (t % 32);
    }
  }
  void accept(TokenId token) override {
    CHECK(token % modulus_ == accepted.size() % modulus_, "token {}", token);
    accepted.push_back(token);
  }
  std::span<const TokenId> draft_tokens() override { return {}; }
  void rollback(int tokens) override { accepted.resize(accepted.size() - tokens); }

  std::vector<TokenId> accepted;

 private:
  size_t modulus_;
};

}  // namespace banyan::test
