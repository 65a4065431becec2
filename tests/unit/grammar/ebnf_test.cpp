// EBNF and structural tags: llama.cpp's grammars, refusals, and ambiguous grammars that must stay
// cheap.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "banyan/grammar.h"
#include "base/file.h"
#include "support/shared.h"

namespace banyan::ebnf_test {
namespace {

Grammar must(Result<Grammar> grammar) {
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  return *std::move(grammar);
}

Grammar from_file(const std::string& name) {
  return must(Grammar::from_ebnf(*read_file(test::shared_path("data/grammar/gbnf/" + name))));
}

std::string refusal(std::string_view source) {
  auto grammar = Grammar::from_ebnf(source);
  return grammar ? "accepted" : grammar.error().message;
}

TEST(Ebnf, ReadsPublishedGrammars) {
  REQUIRE_SHARED("data/grammar/gbnf");
  Grammar json = from_file("json.gbnf");
  EXPECT_TRUE(json.matches("{\"a\": [1, 2.5e3, {\"b\": null}], \"c\": \"x\\u00e9\"}"));
  EXPECT_FALSE(json.matches("{\"a\": [1, 2.5e3, {\"b\": null]}"));
  EXPECT_TRUE(from_file("arithmetic.gbnf").matches("1 +2 =3\n"));
  EXPECT_TRUE(from_file("c.gbnf").matches("int main(){return 1+2;}"));
  EXPECT_TRUE(from_file("chess.gbnf").matches("1. e4 e5\n2. Nf3 Nc6\n"));
  EXPECT_TRUE(from_file("list.gbnf").matches("- one\n- two\n"));
  EXPECT_TRUE(from_file("japanese.gbnf").matches("こんにちは 世界"));
  EXPECT_TRUE(from_file("english.gbnf").matches("Hello, [world]\\!"));
  EXPECT_TRUE(from_file("json_arr.gbnf").matches_prefix("[\n"));
  EXPECT_TRUE(from_file("vllm-sql.gbnf").matches("SELECTcol_1fromtable_2wherecol_2=1"));
}

TEST(Ebnf, CountsRepetitions) {
  Grammar grammar = must(Grammar::from_ebnf("root ::= (\"a\" [0-9]){2,9000} \"\\n\"? 'x'{3}"));
  auto text = [](int n) {
    std::string s;
    for (int i = 0; i < n; ++i) s += "a7";
    return s + "xxx";
  };
  for (int n : {1, 2, 3, 9000, 9001}) EXPECT_EQ(grammar.matches(text(n)), n >= 2 && n <= 9000) << n;
}

TEST(Ebnf, UnrollsLeftRecursion) {
  Grammar sum = must(
      Grammar::from_ebnf("root ::= root \"+\" term | term\nterm ::= [0-9]+ | \"(\" root \")\""));
  EXPECT_TRUE(sum.matches("1+(2+3)+45"));
  EXPECT_FALSE(sum.matches("1+"));
  EXPECT_FALSE(sum.matches("+1"));
}

TEST(Ebnf, RefusesWithTheLine) {
  EXPECT_EQ(refusal("root ::= a"), "grammar, line 1: rule \"a\" is not defined");
  EXPECT_EQ(refusal("x ::= \"a\""), "the grammar has no rule \"root\"");
  EXPECT_EQ(refusal("root ::= \"a\n"), "grammar, line 1: a line break within quotes at \"\\x0a\"");
  EXPECT_EQ(refusal("root ::= (\"a\""), "grammar, line 1: expected ) at the end");
  EXPECT_EQ(refusal("root ::= \"a\"\nroot ::= \"b\""),
            "grammar, line 2: rule \"root\" is defined twice, again at \" ::= \\\"b\\\"\"");
  EXPECT_EQ(refusal("root ::= a \"x\" | \"y\"\na ::= b\nb ::= root \"z\""),
            "rule \"root\" is left-recursive: it can call itself before it reads anything; move "
            "the call to the end of the rule, or use * or +");
  EXPECT_EQ(refusal("root ::= \"a\" root"), "the grammar accepts no text at all");
  EXPECT_EQ(refusal(""), "the grammar has no rules");
  EXPECT_TRUE(refusal("root ::= " + std::string(100'000, '(')).contains("nested too deeply"));
}

TEST(Ebnf, AmbiguityCostsNoMoreThanLength) {
  // The number of ways to read these grows exponentially with the text.
  Grammar nested = must(Grammar::from_ebnf("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\""));
  EXPECT_TRUE(nested.matches(std::string(2000, 'a') + "d" + std::string(2000, 'c')));
  EXPECT_FALSE(nested.matches(std::string(2000, 'a') + "d" + std::string(1999, 'c')));
  Grammar wide = must(Grammar::from_ebnf("root ::= s*\ns ::= \"a\" s? \"a\"? | \"a\" \"a\""));
  EXPECT_TRUE(wide.matches(std::string(200, 'a')));
  std::string chain;
  for (int i = 0; i < 60; ++i) {
    chain += fmt::format("r{} ::= r{} \"a\" | r{} \"b\"\n", i, i + 1, i + 1);
  }
  Grammar deep = must(Grammar::from_ebnf("root ::= r0\n" + chain + "r60 ::= \"x\" r0 | \"x\""));
  EXPECT_TRUE(deep.matches("x" + std::string(60, 'a')));
}

TEST(StructuralTag, FreesTextBetweenTags) {
  Grammar grammar = must(Grammar::from_structural_tag(R"({"type": "structural_tag",
    "structures": [{"begin": "<function=add>", "schema": {"type": "object", "properties":
    {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false},
    "end": "</function>"}, {"begin": "<function=stop>", "schema": {"type": "null"},
    "end": "</function>"}], "triggers": ["<function="]})"));
  EXPECT_TRUE(grammar.matches("Just text < with > signs."));
  EXPECT_TRUE(
      grammar.matches("First <function=add>{\"x\":1}</function> then "
                      "<function=stop>null</function>."));
  EXPECT_FALSE(grammar.matches("First <function=add>{\"y\":1}</function>"));
  EXPECT_FALSE(grammar.matches("First <function=sub>{\"x\":1}</function>"));
  EXPECT_FALSE(grammar.matches("First <function="));
  EXPECT_TRUE(grammar.matches_prefix("First <function="));
}

TEST(StructuralTag, ComposesFormats) {
  Grammar grammar = must(Grammar::from_structural_tag(R"({"format": {"type": "sequence",
    "elements": [{"type": "tag", "begin": "<think>", "content": {"type": "any_text"},
    "end": "</think>"}, {"type": "tags_with_separator", "separator": ";", "at_least_one": true,
    "tags": [{"begin": "a=",
    "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "!"},
    {"begin": "b=", "content": {"type": "grammar",
    "grammar": "root ::= \"x\"+"}, "end": ""}]}]}})"));
  EXPECT_TRUE(grammar.matches("<think>any </thin text</think>a=12!;b=xx"));
  EXPECT_FALSE(grammar.matches("<think>any</think>"));
  EXPECT_FALSE(grammar.matches("<think>any</think> a=1!"));
  auto bad = Grammar::from_structural_tag(R"({"format": {"type": "poem"}})");
  EXPECT_EQ(bad.error().message, "format/type: \"poem\" is not supported");
}

TEST(Grammar, StartsAfterATag) {
  Grammar grammar = must(must(Grammar::from_regex("[0-9]+")).after("</think>"));
  EXPECT_TRUE(grammar.matches("some thoughts</think>42"));
  EXPECT_FALSE(grammar.matches("some thoughts 42"));
  EXPECT_FALSE(grammar.matches("x</think>42</think>42"));
}

TEST(Grammar, ChoosesOneText) {
  std::vector<std::string> choices = {"yes", "no", "nothing"};
  Grammar grammar = must(Grammar::from_choices(choices));
  EXPECT_TRUE(grammar.matches("no"));
  EXPECT_TRUE(grammar.matches("nothing"));
  EXPECT_FALSE(grammar.matches("not"));
  EXPECT_FALSE(Grammar::from_choices({}).has_value());
}

}  // namespace
}  // namespace banyan::ebnf_test
