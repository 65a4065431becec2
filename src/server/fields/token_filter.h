// allowed_token_ids and bad_words: restricts output tokens without a grammar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "banyan/constraint_source.h"
#include "banyan/request.h"
#include "server/fields/request.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// As given in the request.
struct TokenWishes {
  std::vector<TokenId> allowed_token_ids;  // empty: all
  std::vector<std::string> bad_words;

  bool empty() const { return allowed_token_ids.empty() && bad_words.empty(); }
};
TokenWishes read_token_wishes(RequestFields& fields);

// The same as tokens. Immutable; shared by the samples of a request.
struct TokenRules {
  std::vector<TokenId> allowed;              // empty: all
  std::vector<std::vector<TokenId>> banned;  // the last token of each is not drawn after the others
};
// A word is banned both at the start of a text and after a space, as in vLLM. kInvalidArgument: ids
// outside the vocabulary; kUnsupported: words without a tokenizer.
Result<std::shared_ptr<const TokenRules>> token_rules(const TokenWishes& wishes,
                                                      const Tokenizer* tokenizer,
                                                      int64_t vocabulary);

// Applies the rules to one output. A ban that would leave no token to draw is ignored at that
// position. Only the engine's thread calls it.
class TokenFilter final : public TokenConstraint {
 public:
  TokenFilter(std::shared_ptr<const TokenRules> rules, int64_t vocabulary)
      : rules_(std::move(rules)), vocabulary_(vocabulary) {}

  void fill_mask(std::span<uint32_t> mask) override;
  void accept(TokenId token) override { written_.push_back(token); }
  std::span<const TokenId> draft_tokens() override { return {}; }
  void rollback(int tokens) override;
  bool describe(ConstraintSource& source) const override {
    source.tokens = rules_;
    return true;
  }

 private:
  void fill_allowed(std::span<uint32_t> mask) const;

  const std::shared_ptr<const TokenRules> rules_;
  const int64_t vocabulary_;
  std::vector<TokenId> written_;
};

}  // namespace banyan
