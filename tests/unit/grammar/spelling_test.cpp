// Grammars that a vocabulary cannot spell are refused when they are compiled, with the text that no
// token spells.
#include "grammar/spelling.h"

#include <gtest/gtest.h>

#include "grammar/compiler.h"

namespace banyan::spelling_test {
namespace {

using Kind = GrammarSource::Kind;

// Letters, digits and what JSON needs, each a token, but no 'q' alone and no byte above ASCII.
std::vector<std::string> small_vocabulary() {
  std::vector<std::string> tokens;
  for (int c = 0x20; c < 0x7f; ++c) {
    if (c != 'q') tokens.emplace_back(1, static_cast<char>(c));
  }
  tokens.push_back("qu");
  tokens.push_back("\xc3\xbc");  // ü
  return tokens;
}

std::string refusal(const GrammarSource& source,
                    std::vector<std::string> tokens = small_vocabulary()) {
  GrammarCompiler compiler(TokenVocabulary::make(std::move(tokens), {}), {}, {});
  auto compiled = compiler.compile(source);
  if (compiled) return "";
  EXPECT_EQ(compiled.error().code, ErrorCode::kInvalidArgument);
  return compiled.error().message;
}

TEST(Spelling, ATextThatNoTokenSpellsIsNamedWhenTheGrammarIsCompiled) {
  std::string asks = "the grammar requires \"é\", which the model's tokens cannot spell";
  EXPECT_EQ(refusal({Kind::kRegex, "caf(é|éé)"}), asks);
  EXPECT_EQ(refusal({Kind::kChoices, R"(["é"])"}), asks);
  EXPECT_EQ(refusal({Kind::kEbnf, "root ::= \"a\" rest\nrest ::= [0-9]+ \"é\""}), asks);
  EXPECT_EQ(refusal({Kind::kJsonSchema, R"({"type": "object", "required": ["é"],
      "properties": {"name": {"type": "string"}, "é": {"type": "integer"}}})"}),
            asks);
  EXPECT_EQ(refusal({Kind::kRegex, "[à-ï]+"}),
            "the grammar requires \"à\", which the model's tokens cannot spell");
}

TEST(Spelling, ATextIsFollowedTokenByTokenWhereThereAreFew) {
  EXPECT_EQ(refusal({Kind::kRegex, "q[0-9]"}),
            "the model's tokens cannot spell \"q\" at the beginning");
  EXPECT_EQ(refusal({Kind::kRegex, "[0-9]{1,3}q"}),
            "the model's tokens cannot spell \"q\" after \"000\"");
}

TEST(Spelling, WhatTokensCanWriteIsNotRefused) {
  for (const char* pattern : {"qu[0-9]", "(a|é)", "ü+", "[a-p]*", "tea|caf(é|e)", ""}) {
    EXPECT_EQ(refusal({Kind::kRegex, pattern}), "") << pattern;
  }
  EXPECT_EQ(refusal({Kind::kJsonObject, ""}), "");
  EXPECT_EQ(refusal({Kind::kJsonSchema, R"({"type": "object", "properties": {"é": {}}})"}), "");
  std::vector<std::string> bytes;
  for (int b = 0; b < 255; ++b) bytes.emplace_back(1, static_cast<char>(b));
  EXPECT_EQ(refusal({Kind::kRegex, "é[à-ï]q"}, bytes), "");
}

}  // namespace
}  // namespace banyan::spelling_test
