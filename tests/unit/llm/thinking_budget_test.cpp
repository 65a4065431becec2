// The limit on reasoning tokens, alone and in an engine with drafts and grammars.
#include "llm/thinking_budget.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "llm/llm_parts.h"
#include "server/openai/endpoints.h"
#include "support/api.h"

namespace banyan::thinking_budget_test {
namespace {

class ThinkingBudgetTest : public testing::Test {
 protected:
  std::vector<TokenId> ids(const std::string& text) {
    return tokenizer_->encode(text, {.add_special_tokens = false}).value();
  }
  std::shared_ptr<const ThinkingRules> rules(const char* format, const ThinkingAnswer& answer,
                                             int64_t tokens) {
    return thinking_rules(*tokenizer_, **find_reasoning_format(format, ""), answer, tokens).value();
  }
  // The one token that may come; -1 if there are more.
  TokenId forced(TokenConstraint& constraint) {
    std::vector<uint32_t> mask(static_cast<size_t>((kVocabulary + 31) / 32), 0);
    constraint.fill_mask(mask);
    TokenId found = -1;
    for (TokenId id = 0; id < kVocabulary; ++id) {
      if (((mask[static_cast<size_t>(id) / 32] >> (id % 32)) & 1u) == 0) continue;
      if (found >= 0) return -1;
      found = id;
    }
    return found;
  }

  static constexpr int kVocabulary = 703;
  std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::load(test::source_path("tests/golden/tokenizer/tiny_byte_level")).value();
};

TEST_F(ThinkingBudgetTest, ForcesTheEndOnceTheTokensAreSpentAndNothingElse) {
  auto rules = this->rules("qwen3", {.start = ReasoningStart::kInside}, 3);
  ThinkingBudget budget(rules, nullptr, kVocabulary);
  for (const char* letter : {"a", "b", "c"}) {
    EXPECT_EQ(forced(budget), -1);
    EXPECT_TRUE(budget.draft_tokens().empty());
    budget.accept(ids(letter)[0]);
  }
  for (size_t i = 0; i < rules->ending.size(); ++i) {
    EXPECT_EQ(forced(budget), rules->ending[i]);
    EXPECT_TRUE(std::ranges::equal(budget.draft_tokens(), std::span(rules->ending).subspan(i)));
    budget.accept(rules->ending[i]);
  }
  EXPECT_EQ(forced(budget), -1);
  // Taken back and gone through again, it says the same at each place.
  budget.rollback(static_cast<int>(rules->ending.size()) + 1);
  EXPECT_EQ(forced(budget), -1);
  budget.accept(ids("x")[0]);
  EXPECT_EQ(forced(budget), rules->ending[0]);
}

TEST_F(ThinkingBudgetTest, WaitsForTheMarkAndForTheEndOfACharacter) {
  auto rules = this->rules("qwen3", {.start = ReasoningStart::kMark}, 1);
  ThinkingBudget marked(rules, nullptr, kVocabulary);
  for (TokenId id : ids("\n<think>")) {
    EXPECT_EQ(forced(marked), -1);
    marked.accept(id);
  }
  std::vector<TokenId> heart = ids("♥");
  ASSERT_GT(heart.size(), 1u);
  for (TokenId id : heart) {
    EXPECT_EQ(forced(marked), -1);
    marked.accept(id);
  }
  EXPECT_EQ(forced(marked), rules->ending[0]);
  ThinkingBudget other(rules, nullptr, kVocabulary);
  for (TokenId id : ids("No, <think> is no mark here")) other.accept(id);
  EXPECT_EQ(forced(other), -1);
}

TEST_F(ThinkingBudgetTest, EndsWithTheReasoningsOwnEndOrACall) {
  for (const char* end : {"ab</think>", "ab<tool_call>"}) {
    auto rules =
        this->rules("qwen3", {.start = ReasoningStart::kInside, .call = "<tool_call>"}, 100);
    ThinkingBudget budget(rules, nullptr, kVocabulary);
    for (TokenId id : ids(end)) budget.accept(id);
    for (int i = 0; i < 200; ++i) budget.accept(ids("x")[0]);
    EXPECT_EQ(forced(budget), -1) << end;
  }
  EXPECT_EQ(rules("qwen3", {.start = ReasoningStart::kOutside}, 1), nullptr);
}

TEST_F(ThinkingBudgetTest, HarmonysMessagesEndInTheFinalOne) {
  auto text = [&](bool may_call) {
    return tokenizer_->decode(rules("gpt-oss", {.may_call = may_call}, 2)->ending).value();
  };
  EXPECT_EQ(text(true), "<|end|>");
  EXPECT_EQ(text(false), "<|end|><|start|>assistant<|channel|>final<|message|>");
  auto rules = this->rules("gpt-oss", {.may_call = true}, 2);
  ThinkingBudget budget(rules, nullptr, kVocabulary);
  for (TokenId id : ids("<|channel|>analysis<|message|>")) budget.accept(id);
  for (int i = 0; i < 2; ++i) budget.accept(ids("x")[0]);
  for (TokenId id : rules->ending) {
    EXPECT_EQ(forced(budget), id);
    budget.accept(id);
  }
  EXPECT_EQ(forced(budget), -1);
}

// Of a chat whose template opens the reasoning.
class ThinkingChat : public testing::Test {
 protected:
  Json chat(const std::string& fields) {
    return test::ask_json(
        *llm_, plan_chat,
        R"({"messages":[{"role":"user","content":"Hi"}],"seed":5,"ignore_eos":true,
        "max_tokens":60,"return_token_ids":true,)" +
            fields + "}");
  }
  static int64_t reasoning(const Json& answer) { return answer["usage"]["reasoning_tokens"]; }

  std::unique_ptr<Llm> llm_ = test::tiny_llm(
      "{% for m in messages %}{{ m.content }}{% endfor %}<think>{% if never %}</think>{% endif %}",
      {.ends = true, .vocabulary = 800, .context = 512});
  int64_t ending_ =
      std::ssize(*tokenizer_of(*llm_)->encode("</think>", {.add_special_tokens = false}));
};

TEST_F(ThinkingChat, SpendsItsBudgetAndThenAnswers) {
  Json free = chat(R"("thinking_token_budget":-1)");
  EXPECT_EQ(reasoning(free), 60);
  EXPECT_EQ(free["choices"][0]["message"]["content"], nullptr);
  for (const char* name :
       {"thinking_token_budget", "reasoning_budget_tokens", "thinking_budget_tokens"}) {
    Json bound = chat("\"" + std::string(name) + "\":8");
    const Json& choice = bound["choices"][0];
    EXPECT_GE(reasoning(bound), 8 + ending_);
    EXPECT_LE(reasoning(bound), 8 + 3 + ending_);  // to the end of a character
    EXPECT_FALSE(choice["message"]["content"].get<std::string>().empty());
    // Up to there nothing is changed.
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(choice["token_ids"][i], free["choices"][0]["token_ids"][i]);
    }
  }
  EXPECT_EQ(reasoning(chat(R"("thinking_token_budget":0)")), ending_);
}

TEST_F(ThinkingChat, IsTheSameWithDraftsAndSamplesAndComesBeforeAGrammar) {
  const std::string budget = R"("thinking_token_budget":8,"n":2)";
  Json alone = chat(budget);
  Json drafted = chat(budget + R"(,"prediction":{"type":"content","content":"a b c </think> a"})");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(alone["choices"][i]["token_ids"], drafted["choices"][i]["token_ids"]);
  }
  Json regex = chat(R"("thinking_token_budget":8,"regex":"[ab]{3}")");
  EXPECT_EQ(regex["choices"][0]["message"]["content"].get<std::string>().size(), 3u);
}

}  // namespace
}  // namespace banyan::thinking_budget_test
