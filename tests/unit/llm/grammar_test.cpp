// Grammars, from a text request to the generated text.
#include <gtest/gtest.h>

#include "banyan/llm.h"
#include "grammar/run/matcher.h"
#include "llm/llm_parts.h"
#include "support/api.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::grammar_test {
namespace {

using Kind = GrammarSource::Kind;

class ConstrainedText : public testing::Test {
 protected:
  TextRequest request(Kind kind, std::string text) {
    TextRequest request{.text = "Hello", .options = {.max_new_tokens = 40}};
    request.sampling.seed = 1;
    request.options.grammar = GrammarSource{.kind = kind, .text = std::move(text)};
    return request;
  }
  Generation generate(const TextRequest& request) {
    auto made = llm_->generate(request);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : Generation();
  }
  std::string error(const TextRequest& request) {
    auto made = llm_->generate(request);
    return made ? "" : made.error().message;
  }

  std::unique_ptr<Llm> llm_ = test::tiny_llm({}, {.ends = true, .vocabulary = 800});
};

TEST_F(ConstrainedText, EndsWithAnEndTokenWhereTheGrammarEnds) {
  Generation g = generate(request(Kind::kRegex, "ab[0-9]{3}"));
  EXPECT_TRUE(Grammar::from_regex("ab[0-9]{3}")->matches(g.text)) << g.text;
  EXPECT_EQ(g.finish, FinishReason::kStop);
  EXPECT_TRUE(g.matched_stop_token.has_value());
  EXPECT_TRUE(g.grammar_notes.empty());
}

// The model has more tokens than the tokenizer: those that have no text are never drawn.
TEST_F(ConstrainedText, EveryKindEndsValidOrAtTheLength) {
  const std::vector<std::pair<Kind, std::string>> sources = {
      {Kind::kRegex, "[a-z]{2,5}( [a-z]+)?"},
      {Kind::kJsonSchema, R"({"type":"object","properties":{"a":{"type":"integer"},
                             "b":{"enum":["x","y"]}},"required":["a","b"]})"},
      {Kind::kJsonObject, ""},
      {Kind::kEbnf, "root ::= \"yes\" | \"no\" [!]{1,3}"},
      {Kind::kChoices, R"(["red","green"])"},
      {Kind::kStructuralTag, R"({"structures":[{"begin":"<f>","schema":{"type":"integer"},
                                "end":"</f>"}],"triggers":["<f"]})"}};
  ASSERT_GT(llm_->info().vocabulary, tokenizer_of(*llm_)->vocab_size());
  int ended = 0;
  for (const auto& [kind, text] : sources) {
    for (uint64_t seed = 0; seed < 12; ++seed) {
      TextRequest asked = request(kind, text);
      asked.sampling.seed = seed;
      asked.options.skip_special_tokens = false;
      Generation g = generate(asked);
      Grammar grammar = *Grammar::from_source(*asked.options.grammar);
      if (g.finish == FinishReason::kStop) {
        EXPECT_TRUE(grammar.matches(g.text)) << g.text;
        ++ended;
      } else {
        EXPECT_EQ(g.finish, FinishReason::kLength);
        EXPECT_EQ(g.output_ids.size(), 40u);
      }
      for (TokenId id : g.output_ids) EXPECT_LT(id, tokenizer_of(*llm_)->vocab_size());
    }
  }
  EXPECT_GT(ended, 20);
}

TEST_F(ConstrainedText, IgnoreEosAndMinNewTokensHoldAsFarAsTheGrammarGoes) {
  TextRequest asked = request(Kind::kRegex, "a{1,7}");
  asked.options.ignore_eos = true;
  EXPECT_EQ(generate(asked).text, "aaaaaaa");
  asked.options.ignore_eos = false;
  asked.options.min_new_tokens = 39;
  EXPECT_EQ(generate(asked).text, "aaaaaaa");
  asked.options.grammar->text = "a*";
  asked.options.ignore_eos = true;
  Generation g = generate(asked);
  EXPECT_EQ(g.finish, FinishReason::kLength);
  EXPECT_EQ(g.output_ids.size(), 40u);
  asked = request(Kind::kRegex, "(a|b)*");
  asked.options.min_new_tokens = 10;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    asked.sampling.seed = seed;
    EXPECT_GE(generate(asked).output_ids.size(), 10u);
  }
}

TEST_F(ConstrainedText, StopStringsAndStopTokensMayCutItShort) {
  TextRequest asked = request(Kind::kRegex, "xy\\{z\\}");
  asked.options.stop = {"{"};
  Generation g = generate(asked);
  EXPECT_EQ(g.text, "xy");
  EXPECT_EQ(g.finish, FinishReason::kStop);
  EXPECT_EQ(g.matched_stop_text, "{");
  asked = request(Kind::kRegex, "xyz");
  Generation whole = generate(asked);
  asked.options.stop_token_ids = {whole.output_ids[0]};
  g = generate(asked);
  EXPECT_EQ(g.matched_stop_token, whole.output_ids[0]);
  EXPECT_EQ(g.output_ids.size(), 1u);
  asked.options.min_new_tokens = 2;  // another way to begin is taken, or none is left
  g = generate(asked);
  EXPECT_TRUE(g.text == "xyz" || g.output_ids.size() == 1) << g.text;
}

TEST_F(ConstrainedText, RelaxedSchemasSayWhatIsNotEnforced) {
  TextRequest asked = request(Kind::kJsonSchema, R"({"type":"array","items":{"type":"integer",
      "maximum":9,"minimum":0},"maxItems":2,"uniqueItems":true})");
  EXPECT_NE(error(asked).find("uniqueItems"), std::string::npos) << error(asked);
  asked.options.grammar->json.strict = false;
  Generation g = generate(asked);
  ASSERT_EQ(g.grammar_notes.size(), 1u);
  EXPECT_NE(g.grammar_notes[0].find("uniqueItems"), std::string::npos);
}

TEST_F(ConstrainedText, SamplesHaveConstraintsOfTheirOwn) {
  TextRequest asked = request(Kind::kChoices, R"(["left","right"])");
  auto compiled = compile_grammar(*llm_, *asked.options.grammar);
  ASSERT_TRUE(compiled);
  auto first = constraint_of(*llm_, asked.options, *compiled),
       second = constraint_of(*llm_, asked.options, *compiled);
  std::vector<uint32_t> before(800 / 32), after(800 / 32);
  second->fill_mask(before);
  first->accept(tokenizer_of(*llm_)->encode("l", {.add_special_tokens = false})->front());
  second->fill_mask(after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(llm_->grammar_stats().misses, 1u);
  EXPECT_EQ(generate(asked).finish, FinishReason::kStop);
  EXPECT_EQ(llm_->grammar_stats().hits, 1u);
}

TEST_F(ConstrainedText, MistakesAreTheCallersToMend) {
  EXPECT_NE(error(request(Kind::kRegex, "(a")).find("("), std::string::npos);
  EXPECT_NE(error(request(Kind::kEbnf, "root ::= other")).find("other"), std::string::npos);
  EXPECT_NE(error(request(Kind::kChoices, "[]")).find("choice"), std::string::npos);
  EXPECT_EQ(llm_->grammar_stats().failures, 3u);
  auto broken = compile_grammar(*llm_, {Kind::kJsonSchema, "{"});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kInvalidArgument);
  auto bare = test::tiny_llm({}, {.tokenizer = false});
  auto compiled = compile_grammar(*bare, {Kind::kRegex, "a"});
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().message.find("needs a tokenizer"), std::string::npos);
  auto endless = test::tiny_llm({}, {.ends = false});
  compiled = compile_grammar(*endless, {Kind::kRegex, "a"});
  ASSERT_FALSE(compiled);
  EXPECT_NE(compiled.error().message.find("eos_token_id"), std::string::npos);
}

}  // namespace
}  // namespace banyan::grammar_test
