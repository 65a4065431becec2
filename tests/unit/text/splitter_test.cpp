// The hand-written splitters against PCRE2 with the same patterns.
#include "text/tokenizer/splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/tokenizer/pattern.h"
#include "unicode/unicode.h"

namespace banyan::splitter_test {
namespace {

using Parts = std::vector<std::pair<std::string, bool>>;

Parts parts_of(std::string_view text, const std::vector<TextSpan>& spans) {
  Parts parts;
  for (const TextSpan& span : spans) {
    parts.emplace_back(text.substr(span.begin, span.end - span.begin), span.matched);
  }
  return parts;
}

// What PCRE2 can be given: [A&&[^\p{Han}]] as (?:(?!\p{Han})[A]).
std::string without_intersections(std::string pattern) {
  constexpr std::string_view kMark = "&&[^\\p{Han}]]";
  for (size_t at = pattern.find(kMark); at != std::string::npos; at = pattern.find(kMark)) {
    const size_t open = pattern.rfind('[', at);
    pattern.replace(at, kMark.size(), "])");
    pattern.insert(open, "(?:(?!\\p{Han})");
  }
  return pattern;
}

std::string random_text(std::mt19937& random) {
  const std::u32string alphabet =
      U"aAbzZsStTrReEvVlLmMdD''''''  \t\n\n\r\r/.,!?-_$+<~^0123459\u00a0\u3000\u2028\u0085\u180e"
      U"\u00e9\u0301\u0308\u0345\u01c5\u02b0\u00aa\u00bd\u2167\u0663\u4f60\u597d\u3005\u3007\u2e80"
      U"\u3042\u30a2\u30fc\uac00\u1100\u0416\u0436\u05d0\u0905\u093f\u017f\u212a\u0130\u0131"
      U"\U0001f600\u200d\ufe0f\u2019\u20dd\ue000\u0001\u0378\U0002ebf0\U00010d50\U0001ccf0";
  std::string text;
  const size_t size = random() % 24;
  for (size_t i = 0; i < size; ++i) {
    const char32_t code = alphabet[random() % alphabet.size()];
    const size_t times = random() % 8 == 0 ? 1 + random() % 5 : 1;
    for (size_t j = 0; j < times; ++j) unicode::append(text, code);
  }
  return text;
}

TEST(Splitter, EqualsThePatternOnAdversarialText) {
  for (std::string_view pattern : known_patterns()) {
    const Splitter splitter = find_splitter(pattern);
    ASSERT_NE(splitter, nullptr);
    auto reference = Pattern::compile(without_intersections(std::string(pattern)));
    ASSERT_TRUE(reference) << reference.error().message;
    std::mt19937 random(7);
    PatternScratch scratch;
    for (int i = 0; i < 20000; ++i) {
      const std::string text = random_text(random);
      std::vector<TextSpan> spans, expected;
      splitter(text, spans);
      ASSERT_TRUE(reference->split(text, scratch, expected));
      ASSERT_EQ(parts_of(text, spans), parts_of(text, expected)) << pattern << " on " << text;
    }
  }
}

TEST(Splitter, UnknownPatternsHaveNone) {
  EXPECT_EQ(find_splitter("\\p{N}{1,4}"), nullptr);
}

}  // namespace
}  // namespace banyan::splitter_test
