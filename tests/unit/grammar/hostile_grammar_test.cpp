// Issue 17: grammars that exceeded the limits of their compilation. Every front end gets sources
// designed to make one stage expensive. Each must end within its budget, in a grammar or in an
// error that names what was too large. The limit is the thread's own CPU time, so other load on the
// machine does not matter; the tolerance is the time between two checks of the clock.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <random>

#include "banyan/grammar.h"
#include "support/sanitized.h"

namespace banyan::hostile_grammar_test {
namespace {

using Kind = GrammarSource::Kind;

std::string repeated(int count, const std::function<std::string(int)>& part,
                     std::string_view between = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? std::string(between) : "") + part(i);
  return text;
}

std::string letters(size_t count, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::string text(count, 'a');
  for (char& c : text) c = static_cast<char>('a' + random() / 64 % 26);
  return text;
}

std::string quoted_letters(size_t count, int seed) {
  return '"' + letters(count, static_cast<unsigned>(seed)) + '"';
}

double thread_s() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  auto seconds = [](timeval t) { return static_cast<double>(t.tv_sec) + 1e-6 * t.tv_usec; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What compiling it came to; it must end within its budget.
std::string outcome(Kind kind, std::string text, std::string after = "") {
  constexpr double kAllowed_s = 0.1;
  constexpr double kBetweenLooks_s = test::kSanitized ? 20 : 2;  // 2 without optimisation
  GrammarSource source{.kind = kind, .text = std::move(text), .after = std::move(after)};
  double begin = thread_s();
  Result<Grammar> grammar = Grammar::from_source(source, {.compile_s = kAllowed_s});
  EXPECT_LT(thread_s() - begin, kAllowed_s + kBetweenLooks_s);
  return grammar ? "" : grammar.error().message;
}

bool ended(const std::string& outcome) {
  return outcome.find("took more than 0.1 s") != outcome.npos ||
         outcome.find("too large") != outcome.npos;
}

TEST(HostileGrammar, AChoiceOfAMegabyteEnds) {
  EXPECT_TRUE(ended(outcome(Kind::kChoices, "[" + quoted_letters(1 << 20, 1) + "]")));
  std::string many = "[" + repeated(20'000, [](int i) { return quoted_letters(20, i); }, ",") + "]";
  EXPECT_TRUE(ended(outcome(Kind::kChoices, many)));
  EXPECT_TRUE(ended(outcome(Kind::kChoices, many, "</think>")));
}

TEST(HostileGrammar, ARegexOfManyAlternativesEnds) {
  auto part = [](int i) {
    return letters(5, static_cast<unsigned>(i)) + "[a-z]+" + letters(5, static_cast<unsigned>(i));
  };
  EXPECT_TRUE(ended(outcome(Kind::kRegex, repeated(20'000, part, "|"))));
  EXPECT_TRUE(ended(outcome(Kind::kRegex, letters(1 << 20, 1))));
}

// The parser has a limit on parallel alternatives and drops the rest, so part of the language was
// rejected.
TEST(HostileGrammar, MoreWaysToGoOnThanAParserHoldsAreRefused) {
  auto part = [](int i) { return fmt::format("\"{:05}\" z", 7919 * i % 100000); };
  for (const char* form :
       {"root ::= {}", "root ::= \"x\" r? \"y\"\nr ::= {}", "root ::= \"x\" ({}){{2,5}}"}) {
    for (int count : {4'000, 4'200}) {
      std::string text = fmt::format(fmt::runtime(form), repeated(count, part, " | "));
      text += "\nz ::= \"q\" | \"r\" z\n";
      Result<Grammar> grammar = Grammar::from_ebnf(text, "root", {.compile_s = 20});
      ASSERT_EQ(grammar.has_value(), count == 4'000) << form;
      if (grammar) continue;
      EXPECT_EQ(grammar.error().code, ErrorCode::kExhausted);
      EXPECT_TRUE(grammar.error().message.contains("4096")) << grammar.error().message;
    }
  }
  std::string held = "root ::= " + repeated(4'000, part, " | ") + "\nz ::= \"q\" | \"r\" z\n";
  Grammar grammar = *Grammar::from_ebnf(held, "root", {.compile_s = 20});
  for (int i = 0; i < 4'000; i += 13) {
    EXPECT_TRUE(grammar.matches(fmt::format("{:05}q", 7919 * i % 100000))) << i;
  }
}

TEST(HostileGrammar, RulesThatDoubleEnd) {
  auto twice = [](int i) { return fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1); };
  EXPECT_TRUE(ended(outcome(Kind::kEbnf, repeated(60, twice) + "r60 ::= \"\"\nroot ::= r0 \"a\"")));
}

// One stack for all of them took memory quadratic in their number.
TEST(HostileGrammar, ARuleThatManyCallEnds) {
  auto call = [](int i) { return "r " + quoted_letters(6, i); };
  std::string text =
      "root ::= " + repeated(20'000, call, " | ") + "\nr ::= \"(\" r \")\" | \"x\"\n";
  std::string result = outcome(Kind::kEbnf, text);
  EXPECT_TRUE(result.empty() || ended(result)) << result;
}

TEST(HostileGrammar, LargeSchemasEnd) {
  auto named = [](int i) { return fmt::format(R"("p{}":{{"type":"string"}})", i); };
  auto branch = [](int i) { return fmt::format(R"({{"properties":{{"k{}":{{}}}}}})", i); };
  auto value = [](int i) { return fmt::format(R"({{"a":{},"b":[{}]}})", i, i); };
  auto chain = [](int i) { return fmt::format(R"("d{}":{{"$ref":"#/$defs/d{}"}})", i, i + 1); };
  auto integer = [](int) { return std::string(R"({"type":"integer"})"); };
  for (const std::string& schema :
       {R"({"type":"object","properties":{)" + repeated(60'000, named, ",") + "}}",
        R"({"anyOf":[)" + repeated(20'000, branch, ",") + "]}",
        R"({"enum":[)" + repeated(20'000, value, ",") + "]}",
        R"({"type":"array","prefixItems":[)" + repeated(50'000, integer, ",") + "]}",
        R"({"$ref":"#/$defs/d0","$defs":{)" + repeated(20'000, chain, ",") + R"(,"d20000":{}}})"}) {
    std::string result = outcome(Kind::kJsonSchema, schema);
    EXPECT_TRUE(ended(result)) << schema.substr(0, 60) << ": " << result;
  }
}

TEST(HostileGrammar, LargeStructuralTagsEnd) {
  auto structure = [](int i) {
    return fmt::format(R"({{"begin":"<{0}>","schema":{{}},"end":"</f>"}})",
                       letters(5, static_cast<unsigned>(i)));
  };
  auto trigger = [](int i) { return "\"<" + letters(5, static_cast<unsigned>(i)) + "\""; };
  std::string text = R"({"structures":[)" + repeated(5'000, structure, ",") + R"(],"triggers":[)" +
                     repeated(5'000, trigger, ",") + "]}";
  EXPECT_TRUE(ended(outcome(Kind::kStructuralTag, text)));
  EXPECT_TRUE(ended(outcome(Kind::kJsonObject, "", letters(100'000, 4))));
}

}  // namespace
}  // namespace banyan::hostile_grammar_test
