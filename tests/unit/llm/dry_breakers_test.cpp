// DRY's sequence breakers as tokens.
#include "llm/dry_breakers.h"

#include <gtest/gtest.h>

#include "llm/llm_parts.h"
#include "support/api.h"
#include "support/shared.h"

namespace banyan::dry_breakers_test {
namespace {

std::unique_ptr<Tokenizer> tiny(const std::string& name = "tiny_byte_level") {
  return Tokenizer::load(test::source_path("tests/golden/tokenizer/" + name)).value();
}

std::string text_of(const Tokenizer& tokenizer, TokenId head, const std::vector<TokenId>& tail) {
  std::string text = tokenizer.token_bytes(head);
  for (TokenId token : tail) text += tokenizer.token_bytes(token);
  return text;
}

// Every token that has the string in it breaks alone; every other whose end begins it, with what is
// left; and nothing else does.
TEST(DryBreakers, AreAllTokensThatMayHoldTheString) {
  auto tokenizer = tiny();
  for (const std::string& breaker :
       {std::string("\n"), std::string("e"), std::string("the"), std::string("he c"),
        std::string("\xe4\xbd\xa0"), std::string("</s>")}) {
    DryBreakers breakers = make_dry_breakers(*tokenizer, {breaker});
    for (const auto& [head, tails] : breakers) {
      for (const std::vector<TokenId>& tail : tails) {
        EXPECT_NE(text_of(*tokenizer, head, tail).find(breaker), std::string::npos)
            << breaker << ' ' << head;
      }
    }
    size_t alone = 0;
    for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) {
      std::string text = tokenizer->token_bytes(id);
      bool inside = text.find(breaker) != std::string::npos, begins = false;
      for (size_t n = 1; n < breaker.size(); ++n) {
        begins = begins || text.ends_with(breaker.substr(0, n));
      }
      EXPECT_EQ(breakers.contains(id), inside || begins) << breaker << ' ' << id;
      if (!inside) continue;
      ++alone;
      EXPECT_EQ(breakers[id], (std::vector<std::vector<TokenId>>{{}})) << breaker << ' ' << id;
    }
    EXPECT_GT(alone + breakers.size(), 0u) << breaker;
  }
}

TEST(DryBreakers, OfRecentRequestsAreRemembered) {
  auto tokenizer = tiny();
  DryBreakerCache cache;
  auto first = cache.find(*tokenizer, default_dry_breakers());
  EXPECT_EQ(cache.find(*tokenizer, {"\n", ":", "\"", "*"}), first);
  for (char c = 'a'; c < 'a' + 16; ++c) {
    auto other = cache.find(*tokenizer, {std::string(1, c)});
    EXPECT_NE(other, first);
  }
  EXPECT_NE(cache.find(*tokenizer, default_dry_breakers()), first);
}

TEST(DryBreakers, BecomeTokensOnTheWayToTheEngine) {
  auto llm = test::tiny_llm();
  TextRequest request{.text = "a", .sampling = {.dry_multiplier = 1}};
  auto tokens = llm->to_tokens(request);
  ASSERT_TRUE(tokens) << tokens.error().message;
  const Tokenizer& tokenizer = *tokenizer_of(*llm);
  EXPECT_EQ(*tokens->sampling.dry_breakers, make_dry_breakers(tokenizer, {"\n", ":", "\"", "*"}));
  request.sampling.dry_sequence_breakers = std::vector<std::string>{"the"};
  tokens = llm->to_tokens(request);
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(*tokens->sampling.dry_breakers, make_dry_breakers(tokenizer, {"the"}));
  EXPECT_FALSE(tokens->sampling.dry_sequence_breakers);
  request.sampling.dry_sequence_breakers->clear();
  EXPECT_TRUE(llm->to_tokens(request)->sampling.dry_breakers->empty());
  request.sampling.dry_multiplier = 0;
  EXPECT_EQ(llm->to_tokens(request)->sampling.dry_breakers, nullptr);
  request.sampling.dry_sequence_breakers = std::vector<std::string>{std::string(41, 'x')};
  auto refused = llm->to_tokens(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("41"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace banyan::dry_breakers_test
