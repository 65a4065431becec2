// Oniguruma's syntax translated to PCRE2, and what has no translation.
#include "text/tokenizer/pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace banyan::pattern_test {
namespace {

std::string error_of(const std::string& pattern) {
  auto compiled = Pattern::compile(pattern);
  return compiled ? "" : compiled.error().message;
}

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<TextSpan> spans;
  PatternScratch scratch;
  EXPECT_TRUE(Pattern::compile(pattern).value().split(text, scratch, spans));
  std::vector<std::string> found;
  for (const TextSpan& span : spans) {
    if (span.matched) found.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return found;
}

TEST(Pattern, MeansWhatOnigurumaMeans) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches("\\s+", "a \u3000b\u180ec"), Strings{" \u3000"});
  EXPECT_EQ(matches("\\w+", "e\u0301_9-\u24b6"), (Strings{"e\u0301_9", "\u24b6"}));
  EXPECT_EQ(matches("\\p{Han}+", "\u4e2d\u3001\u30fc"), Strings{"\u4e2d"});
  EXPECT_EQ(matches("[a[bc]d]+", "xabcdx"), Strings{"abcd"});
  EXPECT_EQ(matches("^b$", "a\nb\nc"), Strings{"b"});
  EXPECT_EQ(matches("\\p{L}+", "\u1c89\U0002ebf0"), Strings{"\u1c89\U0002ebf0"});
  EXPECT_EQ(matches("\\p{^L}+", "a12b"), Strings{"12"});
}

TEST(Pattern, OptionsReachOverAlternativesToTheEndOfTheirGroup) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches("a(?i)b|c", "aB ac C B"), (Strings{"aB", "ac"}));
  EXPECT_EQ(matches("(?:x(?i)b|c)d|E", "xBd xCd xcd cd e E xcD"),
            (Strings{"xBd", "xCd", "xcd", "E"}));
  EXPECT_EQ(matches("(?i)'s|x", "'S X"), (Strings{"'S", "X"}));
}

TEST(Pattern, DashesInClassesAreRangesOnlyBetweenTwoCharacters) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches("[a[-c]e]", "abcde-"), (Strings{"a", "c", "e", "-"}));
  EXPECT_EQ(matches("[a[c-]e]", "abcde-"), (Strings{"a", "c", "e", "-"}));
  EXPECT_EQ(matches("[[a]-e]", "abcde-"), (Strings{"a", "e", "-"}));
  EXPECT_EQ(matches("[a-c-e]", "abcde-"), (Strings{"a", "b", "c", "e", "-"}));
  EXPECT_EQ(matches("[-a]|[x-]", "ax-b"), (Strings{"a", "x", "-"}));
  EXPECT_EQ(matches("[\\x41-\\x{43}\\u0061-b]+", "ABCDabc"), (Strings{"ABC", "ab"}));
  EXPECT_NE(error_of("[\\d-e]").find("a dash between two classes"), std::string::npos);
  EXPECT_NE(error_of("[a-\\d]").find("a dash between two classes"), std::string::npos);
}

TEST(Pattern, KnowsBoundariesEscapesAndPosixClasses) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches("\\\u00e9[\\\u4f60-\\\u597d]", "\u00e9\u4f61"), Strings{"\u00e9\u4f61"});
  EXPECT_EQ(matches("\\b.", "e\u0301a \u24b6b"), (Strings{"e", " ", "\u24b6"}));
  EXPECT_EQ(matches("\\B\\w", "abc d"), (Strings{"b", "c"}));
  EXPECT_EQ(matches("b\\Z", "b\nb\n"), Strings{"b"});
  EXPECT_EQ(matches("\\h+\\v\\x0A[\\b\\e]", "xfA\v\n\x1b"), Strings{"fA\v\n\x1b"});
  EXPECT_EQ(matches("[[:punct:][:digit:]x]+", "a+1x\u20ac b"), Strings{"+1x\u20ac"});
  EXPECT_EQ(matches("[^[:space:][:cntrl:]]+", "a\x01\u00a0c"), (Strings{"a", "c"}));
  EXPECT_EQ(matches("[\\p{Tamil}\\p{Lao}]+", "a\u0b95\u0ece\u0e81"), Strings{"\u0b95\u0ece\u0e81"});
  for (const char* refused : {"\\x", "\\x80", "\\x{110000}", "\\x{D800}", "\\x{41", "[[:upper:]]",
                              "[[:^digit:]]", "[[:digit", "a{1001}", "(?:a{9})(?m)"}) {
    EXPECT_NE(error_of(refused), "") << refused;
  }
}

TEST(Pattern, RefusesByNameWhatHasNoTranslation) {
  EXPECT_NE(error_of("[\\p{L}&&[^a]]+").find("a class intersection (&&)"), std::string::npos);
  EXPECT_NE(error_of("[[:graph:]]").find("the POSIX class \"graph\""), std::string::npos);
  EXPECT_NE(error_of("[a[^b]]").find("a negated class inside a class"), std::string::npos);
  EXPECT_NE(error_of("\\G").find("the escape \\G"), std::string::npos);
  EXPECT_NE(error_of("(a)\\1").find("the escape \\1"), std::string::npos);
  EXPECT_NE(error_of("(?m)a").find("the group"), std::string::npos);
  EXPECT_NE(error_of("a{1,2}+").find("a + after"), std::string::npos);
  EXPECT_NE(error_of("\\p{Klingon}").find("the property \"Klingon\""), std::string::npos);
  EXPECT_NE(error_of("(a"), "");
  EXPECT_NE(error_of("[a"), "");
  EXPECT_NE(error_of("a)"), "");
  EXPECT_NE(error_of(std::string(1000, '(') + std::string(1000, ')')), "");
  EXPECT_NE(error_of(std::string(1 << 20, 'a')), "");
}

TEST(Pattern, GivesUpOnCatastrophicBacktracking) {
  auto pattern = Pattern::compile("(?:a+)+$|(?:a|aa)+$").value();
  PatternScratch scratch;
  std::vector<TextSpan> spans;
  auto status = pattern.split(std::string(5000, 'a') + "b", scratch, spans);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace banyan::pattern_test
