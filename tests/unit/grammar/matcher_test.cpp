// Masks against the definition (a token is allowed when its bytes lead to a text that can be
// completed), rollback, drafts, and the ends of outputs.
#include "grammar/run/matcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "support/sanitized.h"
#include "support/shared.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::matcher_test {
namespace {

constexpr TokenId kEnd = 0, kCall = 1, kFirstByte = 2;

// Every byte, a special token, and pieces that cut characters and cross quotes.
std::shared_ptr<const TokenVocabulary> small_vocabulary() {
  std::vector<std::string> bytes = {special_token_text("<end>"), special_token_text("<call>")};
  for (int b = 0; b < 256; ++b) bytes.push_back(std::string(1, static_cast<char>(b)));
  bytes[kFirstByte + 255].clear();
  for (const char* piece :
       {"ab",       "abc",       "\"",   "\",", "\",\"", "\":",    "{\"",   "\"}",  "\"]",    "a\"",
        "ab\",\"c", "12",        "123",  "1,",  "true",  "tru",    "null",  "fal",  "  ",     " ",
        "[1",       "[[",        "]]",   "\\n", "\\\"",  "\\u00",  "é",     "\xc3", "\xa9\"", "😀",
        "\xf0\x9f", "\x98\x80",  "aaaa", "éé",  "e\xcc", "\"a\":", "b\":1", "}",    "<call>", "<ca",
        "name",     "\"name\":", "10",   "0.5", "e+",    "-1"}) {
    bytes.push_back(piece);
  }
  // As long as slices of the vocabulary look, and longer (grammar/run/token_slices.h).
  std::string letters(24, 'k');
  for (const char* end : {"", "-", "k", "\n", "\"", "k\""}) bytes.push_back(letters + end);
  return TokenVocabulary::make(bytes, {kEnd}, static_cast<int>(bytes.size()) + 7);
}

std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (char c : text) tokens.push_back(kFirstByte + static_cast<uint8_t>(c));
  return tokens;
}

std::shared_ptr<const CompiledGrammar> compile(Result<Grammar> grammar,
                                               std::shared_ptr<const TokenVocabulary> vocabulary) {
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  return std::make_shared<const CompiledGrammar>(*std::move(grammar), std::move(vocabulary),
                                                 byte_tokens);
}

std::vector<uint32_t> mask_of(Matcher& matcher, const TokenVocabulary& vocabulary) {
  std::vector<uint32_t> mask(vocabulary.mask_words(), 0xdeadbeef);
  matcher.fill_mask(mask);
  return mask;
}

bool allowed(const std::vector<uint32_t>& mask, TokenId token) {
  return (mask[token / 32] >> (token % 32) & 1) != 0;
}

const std::vector<std::string>& schemas() {
  static const std::vector<std::string> kSchemas = {
      R"({"type": "object"})",
      R"({"type": "string"})",
      R"({"type": "string", "maxLength": 5})",
      R"({"type": "string", "minLength": 3, "maxLength": 4})",
      R"({"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 3})",
      R"({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})",
      R"({"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string",
          "maxLength": 3}, "name": {"enum": ["a", "ab", "é"]}}, "required": ["a"]})",
      R"({"type": "object", "additionalProperties": {"type": "number"}, "maxProperties": 2})",
      R"({"type": "object", "patternProperties": {"^a": {"type": "boolean"}},
          "additionalProperties": false})",
      R"({"type": "string", "pattern": "^[a-cé]{2,70}$"})",
      R"({"type": "string", "pattern": "[^b]$", "maxLength": 6})",
      R"({"type": "string", "pattern": "^(?:\\S+\\s+){0,3}\\S+$"})",
      R"({"type": "string", "pattern": "^[0-9a-zA-Z_-]{1,40}$"})",
      R"({"type": "string", "pattern": "^([^:]+:[a-f0-9]+|[a-f0-9]{32})$", "maxLength": 200})",
      R"({"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [{"type": "integer"}, {"type": "array",
          "items": {"$ref": "#/$defs/t"}, "maxItems": 2}]}}})"};
  return kSchemas;
}

std::vector<Result<Grammar>> grammars() {
  std::vector<Result<Grammar>> all;
  for (const std::string& schema : schemas()) all.push_back(Grammar::from_json_schema(schema));
  all.push_back(Grammar::from_json_schema(schemas()[6], {.flexible_whitespace = true}));
  for (const char* pattern :
       {"a{3,500}b?", "(?:ab|a|é)*12", "[^\"]{2,9}\"?", "(?:a|b){90,100}", "[a-zA-Z0-9]{24}-",
        "[^\n]{24}\n", "\"[a-zA-Z0-9]{24}-\"", "(?:a[^b]*\"|\"a\"?)\"x*"}) {
    all.push_back(Grammar::from_regex(pattern));
  }
  all.push_back(Grammar::from_ebnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"1\""));
  all.push_back(
      Grammar::from_ebnf("root ::= root \"a\" | pair\npair ::= \"[\" root{2,3} \"]\" | \"1\""));
  all.push_back(Grammar::from_structural_tag(R"({"structures": [{"begin": "<call>", "schema":
      {"type": "integer"}, "end": "<end>"}], "triggers": ["<ca"]})"));
  return all;
}

// Whether after `text`, `token` leads to a text of the language or the beginning of one.
bool expected(const Grammar& grammar, const std::string& text, const TokenVocabulary& vocabulary,
              TokenId token) {
  if (vocabulary.ends_output(token) && grammar.matches(text)) return true;
  std::string_view bytes = vocabulary.bytes_of(token);
  return !bytes.empty() && grammar.matches_prefix(text + std::string(bytes));
}

TEST(Matcher, MasksAreTheDefinition) {
  auto vocabulary = small_vocabulary();
  std::mt19937_64 random(3);
  for (Result<Grammar>& grammar : grammars()) {
    auto compiled = compile(grammar, vocabulary);
    for (int run = 0; run < (test::kSanitized ? 3 : 12); ++run) {
      Matcher matcher(compiled);
      std::string text;
      for (int step = 0; step < 25 && !matcher.finished(); ++step) {
        auto mask = mask_of(matcher, *vocabulary);
        std::vector<TokenId> choices;
        for (TokenId t = 0; t < vocabulary->mask_tokens(); ++t) {
          ASSERT_EQ(allowed(mask, t), expected(compiled->grammar, text, *vocabulary, t))
              << "after " << text << " token " << t << " " << vocabulary->bytes_of(t);
          if (allowed(mask, t)) choices.push_back(t);
        }
        ASSERT_FALSE(choices.empty()) << "after " << text;
        TokenId token = choices[random() % choices.size()];
        matcher.accept(token);
        text += vocabulary->bytes_of(token);
      }
    }
  }
}

// Every byte may end each of many terminals, under each of the stacks that the last one made.
TEST(Matcher, AmbiguityIsBounded) {
  std::string rules = "root ::= \"a\"";
  for (int i = 0; i < 300; ++i)
    rules += fmt::format(" | [a\\u{:04X}] root [a\\u{:04X}]", 256 + i, 600 + i);
  auto vocabulary = small_vocabulary();
  auto compiled = compile(Grammar::from_ebnf(rules), vocabulary);
  Matcher matcher(compiled);
  for (int step = 0; step < 3; ++step) {
    auto mask = mask_of(matcher, *vocabulary);
    ASSERT_TRUE(allowed(mask, kFirstByte + 'a'));
    matcher.accept(kFirstByte + 'a');
  }
}

TEST(Matcher, RandomWalksEndInTheLanguage) {
  auto vocabulary = small_vocabulary();
  std::mt19937_64 random(4);
  for (Result<Grammar>& grammar : grammars()) {
    auto compiled = compile(grammar, vocabulary);
    int finished = 0;
    for (int run = 0; run < 30; ++run) {
      Matcher matcher(compiled);
      std::string text;
      for (int step = 0; step < 400; ++step) {
        auto mask = mask_of(matcher, *vocabulary);
        if (allowed(mask, kEnd) && matcher.complete() && random() % 4 == 0) {
          matcher.accept(kEnd);
          break;
        }
        std::vector<TokenId> choices;
        for (TokenId t = 1; t < vocabulary->mask_tokens(); ++t) {
          if (allowed(mask, t)) choices.push_back(t);
        }
        if (choices.empty()) break;
        TokenId token = choices[random() % choices.size()];
        matcher.accept(token);
        text += vocabulary->bytes_of(token);
      }
      if (!matcher.complete()) continue;
      ++finished;
      EXPECT_TRUE(compiled->grammar.matches(text)) << text;
    }
    EXPECT_GT(finished, 0);
  }
}

TEST(Matcher, RollbackRestoresEveryState) {
  auto vocabulary = small_vocabulary();
  std::mt19937_64 random(5);
  for (Result<Grammar>& grammar : grammars()) {
    auto compiled = compile(grammar, vocabulary);
    Matcher matcher(compiled);
    std::vector<std::vector<uint32_t>> masks;
    for (int step = 0; step < 300; ++step) {
      masks.resize(static_cast<size_t>(matcher.accepted_tokens()));
      masks.push_back(mask_of(matcher, *vocabulary));
      std::vector<TokenId> choices;
      for (TokenId t = 0; t < vocabulary->mask_tokens(); ++t) {
        if (allowed(masks.back(), t)) choices.push_back(t);
      }
      ASSERT_FALSE(choices.empty());
      matcher.accept(choices[random() % choices.size()]);
      ASSERT_FALSE(matcher.try_accept(kFirstByte + 255));
      if (random() % 4 != 0) continue;
      int back = static_cast<int>(random() % static_cast<uint64_t>(matcher.accepted_tokens() + 1));
      matcher.rollback(back);
      size_t at = static_cast<size_t>(matcher.accepted_tokens());
      if (at >= masks.size()) continue;
      ASSERT_EQ(mask_of(matcher, *vocabulary), masks[at]);
    }
  }
}

TEST(Matcher, DraftsAreWhatMustFollow) {
  auto vocabulary = small_vocabulary();
  auto compiled =
      compile(Grammar::from_json_schema(R"({"type": "object", "properties": {"kind": {"const": "é"},
          "size": {"type": "integer"}}, "required": ["kind", "size"],
          "additionalProperties": false})"),
              vocabulary);
  Matcher matcher(compiled);
  EXPECT_EQ(matcher.forced_bytes(), "{\"kind\":\"é\",\"size\":");
  std::vector<TokenId> drafts(matcher.draft_tokens().begin(), matcher.draft_tokens().end());
  EXPECT_EQ(drafts, byte_tokens("{\"kind\":\"é\",\"size\":"));
  for (TokenId token : drafts) matcher.accept(token);
  EXPECT_TRUE(matcher.draft_tokens().empty());
  for (TokenId token : byte_tokens("5")) matcher.accept(token);
  EXPECT_TRUE(matcher.draft_tokens().empty());
  for (TokenId token : byte_tokens("}")) matcher.accept(token);
  EXPECT_TRUE(matcher.complete());
  EXPECT_TRUE(matcher.draft_tokens().empty());
  matcher.accept(kEnd);
  matcher.accept(kEnd);
  EXPECT_FALSE(matcher.try_accept(kFirstByte + 'a'));
  matcher.rollback(2);
  EXPECT_TRUE(matcher.complete());
  EXPECT_FALSE(matcher.finished());
}

TEST(Matcher, SpecialTokensStandForTheirTagsAlone) {
  auto vocabulary = small_vocabulary();
  auto compiled = compile(Grammar::from_structural_tag(R"({"format": {"type": "sequence",
      "elements": [{"type": "const_string", "value": "<call>"}, {"type": "regex",
      "pattern": "[a-z]+"}]}})"),
                          vocabulary);
  Matcher matcher(compiled);
  auto mask = mask_of(matcher, *vocabulary);
  EXPECT_TRUE(allowed(mask, kCall));
  EXPECT_FALSE(allowed(mask, kEnd));
  matcher.accept(kCall);
  EXPECT_FALSE(allowed(mask_of(matcher, *vocabulary), kCall));
  matcher.accept(kFirstByte + 'x');
  EXPECT_TRUE(allowed(mask_of(matcher, *vocabulary), kEnd));
}

TEST(Matcher, MasksOfARealVocabularyAreTheDefinition) {
  REQUIRE_SHARED("tokenizers/llama3_1");
  auto tokenizer = Tokenizer::load(test::shared_path("tokenizers/llama3_1"));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  auto vocabulary = TokenVocabulary::make(**tokenizer, {128001, 128009});
  EXPECT_EQ(vocabulary->mask_tokens(), 128256);
  std::mt19937_64 random(6);
  for (const std::string& schema : schemas()) {
    auto compiled = compile(Grammar::from_json_schema(schema), vocabulary);
    Matcher matcher(compiled);
    std::string text;
    for (int step = 0; step < (test::kSanitized ? 3 : 8) && !matcher.finished(); ++step) {
      auto mask = mask_of(matcher, *vocabulary);
      Parser parser(compiled->grammar.shared_automaton());
      ParseState state = parser.start();
      ASSERT_TRUE(parser.run(state, text));
      std::vector<TokenId> choices;
      for (TokenId t = 0; t < vocabulary->mask_tokens(); ++t) {
        bool may = vocabulary->ends_output(t) && state.complete;
        if (!may && !vocabulary->bytes_of(t).empty()) {
          ParseState next = state;
          may = parser.run(next, vocabulary->bytes_of(t));
        }
        ASSERT_EQ(allowed(mask, t), may) << text << " then " << vocabulary->bytes_of(t);
        if (may) choices.push_back(t);
      }
      ASSERT_FALSE(choices.empty());
      TokenId token = choices[random() % choices.size()];
      matcher.accept(token);
      text += vocabulary->bytes_of(token);
    }
  }
}

// Flexible whitespace leaves a choice before nearly every token; a text's own habits settle it.
TEST(Matcher, GuessesWhitespaceByHowTheTextIsLaidOut) {
  const char* schema = R"({"type": "object", "required": ["a", "b", "c"], "properties":
      {"a": {"type": "integer"}, "b": {"const": true}, "c": {"const": "x"}},
      "additionalProperties": false})";
  auto compiled =
      compile(Grammar::from_json_schema(schema, {.flexible_whitespace = true}), small_vocabulary());
  auto likely_after = [&](Matcher& matcher, std::string_view text) {
    for (TokenId token : byte_tokens(text)) EXPECT_TRUE(matcher.try_accept(token)) << text;
    return matcher.likely_bytes();
  };
  Matcher compact(compiled), spaced(compiled), indented(compiled);
  EXPECT_EQ(compact.likely_bytes(), "{\"a\":");
  EXPECT_EQ(compact.forced_bytes(), "{");
  EXPECT_EQ(likely_after(compact, "{\"a\":1,"), " \"b\":true, \"c\":\"x\"}");
  EXPECT_EQ(likely_after(compact, "\"b\":"), "true,\"c\":\"x\"}");
  EXPECT_EQ(likely_after(spaced, "{\"a\": 1"), "") << "there may be more digits";
  EXPECT_EQ(likely_after(spaced, ","), " \"b\": true, \"c\": \"x\"}");
  EXPECT_EQ(likely_after(indented, "{\n   \"a\": 1,"), "\n   \"b\": true,\n   \"c\": \"x\"\n}");
  EXPECT_EQ(likely_after(indented, "\n   \"b\":"), " true,\n   \"c\": \"x\"\n}");
  indented.rollback(9);
  EXPECT_EQ(likely_after(indented, ","), "\n   \"b\": true,\n   \"c\": \"x\"\n}");
}

}  // namespace
}  // namespace banyan::matcher_test
