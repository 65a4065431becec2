// Regexes: the published corpora of the rust-regex crate, random patterns against PCRE2, and
// refusals.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pcre2.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>

#include "banyan/grammar.h"
#include "base/file.h"
#include "grammar/regex/dfa.h"
#include "grammar/regex/regex.h"
#include "support/shared.h"
#include "unicode/unicode.h"

namespace banyan::regex_test {
namespace {

// Whether all of `text` matches; nothing when PCRE2 refuses the pattern or gives up.
std::optional<bool> pcre2_matches(const std::string& pattern, const std::string& text) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                   &error, &at, nullptr);
  if (code == nullptr) return std::nullopt;
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  int rc = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                       PCRE2_ANCHORED | PCRE2_ENDANCHORED, data, nullptr);
  pcre2_match_data_free(data);
  pcre2_code_free(code);
  if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) return std::nullopt;
  return rc >= 0;
}

class RandomPattern {
 public:
  explicit RandomPattern(uint64_t seed) : random_(seed) {}

  std::string pattern(int depth) {
    switch (pick(depth > 0 ? 9 : 4)) {
      case 0:
      case 1:
        return std::string(1, "abc"[pick(3)]);
      case 2: {
        constexpr const char* kAtoms[] = {"[ab]",  "[^a]", ".",      "\\d",    "\\w",  "é",
                                          "[à-ï]", "[^é]", "(?:b|)", "(?i:A)", "\\x61"};
        return kAtoms[pick(11)];
      }
      case 3:
        return pick(4) == 0 ? std::string(pick(2) == 0 ? "^" : "$") : "b";
      case 4:
      case 5:
        return pattern(depth - 1) + pattern(depth - 1);
      case 6:
        return fmt::format("(?:{}|{})", pattern(depth - 1), pattern(depth - 1));
      case 7: {
        constexpr const char* kCounts[] = {"*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0}"};
        return fmt::format("(?:{}){}", pattern(depth - 1), kCounts[pick(8)]);
      }
      default:
        return fmt::format("({})", pattern(depth - 1));
    }
  }

  std::string text() {
    std::string text;
    constexpr const char* kPieces[] = {"a", "b", "c", "é", "1", "\n", "A", "aab", "😀"};
    for (size_t n = pick(6); n > 0; --n) text += kPieces[pick(9)];
    return text;
  }

  // A walk from the start to some accepting state.
  std::string accepted(const Dfa& dfa) {
    std::string text;
    uint32_t s = dfa.start();
    for (int steps = 0; steps < 200; ++steps) {
      if (dfa.accepting(s) && (pick(3) == 0 || dfa.only_byte(s) == Dfa::kNoByte)) return text;
      auto byte = static_cast<uint8_t>(pick(256));
      for (int i = 0; i < 256 && dfa.step(s, byte) == Dfa::kDead; ++i) ++byte;
      if (dfa.step(s, byte) == Dfa::kDead) return text;
      text.push_back(static_cast<char>(byte));
      s = dfa.step(s, byte);
    }
    return shortest_text(dfa);
  }

  size_t pick(size_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

TEST(Regex, RandomPatternsMatchWhatPcre2Matches) {
  RandomPattern random(7);
  int compared = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string pattern = random.pattern(4);
    Budget budget;
    auto dfa = dfa_of_regex(pattern, budget);
    ASSERT_TRUE(dfa.has_value()) << dfa.error().message;
    for (int j = 0; j < 8; ++j) {
      std::string text = random.text();
      auto expected = pcre2_matches(pattern, text);
      if (!expected) continue;
      ASSERT_EQ(dfa->matches(text), *expected) << pattern << " on " << text;
      ++compared;
    }
    if (dfa->empty()) continue;
    std::string text = random.accepted(*dfa);
    if (!dfa->matches(text)) continue;
    ASSERT_TRUE(pcre2_matches(pattern, text).value_or(true)) << pattern << " on " << text;
  }
  EXPECT_GT(compared, 25'000);
}

struct CorpusTest {
  std::string name, regex, haystack;
  std::vector<std::pair<size_t, size_t>> matches;
  bool usable = true;
};

// A TOML string in one of the four kinds of quotes, from `at` on.
std::string toml_string(std::string_view text, size_t& at) {
  std::string_view quote = text.substr(at, 3);
  if (quote != "'''" && quote != "\"\"\"") quote = text.substr(at, 1);
  bool escapes = quote[0] == '"';
  std::string value;
  for (at += quote.size(); !text.substr(at).starts_with(quote); ++at) {
    if (!escapes || text[at] != '\\') {
      value += text[at];
      continue;
    }
    char c = text[++at];
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : c == 'x' ? 2 : 0;
    if (digits > 0) {
      auto code = std::stoul(std::string(text.substr(at + 1, digits)), nullptr, 16);
      unicode::append(value, static_cast<char32_t>(code));
      at += digits;
    } else {
      constexpr std::string_view kFrom = "ntr\"\\b", kTo = "\n\t\r\"\\\b";
      size_t i = kFrom.find(c);
      value += i == kFrom.npos ? c : kTo[i];
    }
  }
  at += quote.size();
  return value;
}

// The value of `key` as it stands in the table, up to the line's end; strings may be longer.
std::optional<std::string> toml_value(std::string_view table, const std::string& key) {
  size_t at = table.starts_with(key + " = ") ? 0 : table.find("\n" + key + " = ");
  if (at == table.npos) return std::nullopt;
  at = table.find('=', at) + 2;
  if (table[at] == '\'' || table[at] == '"') return toml_string(table, at);
  size_t end = at;
  for (int open = 0; end < table.size() && (open > 0 || table[end] != '\n'); ++end) {
    open += table[end] == '[' ? 1 : table[end] == ']' ? -1 : 0;
  }
  return std::string(table.substr(at, end - at));
}

CorpusTest corpus_test(std::string_view table) {
  CorpusTest test;
  test.name = toml_value(table, "name").value_or("");
  test.regex = toml_value(table, "regex").value_or("");
  test.haystack = toml_value(table, "haystack").value_or("");
  // Tests of searching: other bounds, other kinds of match, byte mode.
  for (const char* key : {"bounds", "anchored", "compiles", "unicode", "utf8", "line-terminator",
                          "search-kind", "match-kind", "case-insensitive", "unescape"}) {
    if (toml_value(table, key)) test.usable = false;
  }
  std::string matches = toml_value(table, "matches").value_or("[[[");
  std::erase_if(matches, [](char c) { return c == ' ' || c == '\n'; });
  // [[0, 1], [2, 3]]; spans of groups, [[[0, 1], ...]], count by their first.
  if (matches.contains("[[[") || matches.contains('{')) test.usable = false;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (!isdigit(static_cast<unsigned char>(matches[i]))) continue;
    numbers.push_back(std::stoul(matches.substr(i)));
    while (i < matches.size() && isdigit(static_cast<unsigned char>(matches[i]))) ++i;
  }
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    test.matches.emplace_back(numbers[i], numbers[i + 1]);
  }
  return test;
}

TEST(Regex, AgreesWithTheCorporaOfRustRegex) {
  REQUIRE_SHARED("data/grammar/rust-regex");
  int compiled = 0, refused = 0;
  std::filesystem::path folder = test::shared_path("data/grammar/rust-regex");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    std::string text = *read_file(entry.path());
    for (size_t at = text.find("[[test]]"); at != text.npos;) {
      size_t next = text.find("[[test]]", at + 1);
      CorpusTest test = corpus_test(text.substr(at + 9, next - at - 9));
      at = next;
      if (!test.usable || unicode::first_invalid(test.haystack)) continue;
      // Theirs follow Unicode, RE2's and ours ASCII.
      bool perl = test.regex.find("\\w") != test.regex.npos ||
                  test.regex.find("\\d") != test.regex.npos ||
                  test.regex.find("\\s") != test.regex.npos || test.regex.contains("[:");
      bool ascii =
          std::all_of(test.haystack.begin(), test.haystack.end(), [](char c) { return c >= 0; });
      if (perl && !ascii) continue;
      auto grammar = Grammar::from_regex(test.regex);
      if (!grammar) {
        ++refused;
        continue;
      }
      ++compiled;
      SCOPED_TRACE(fmt::format("{}: {} on {}", test.name, test.regex, test.haystack));
      EXPECT_FALSE(test.matches.empty() && grammar->matches(test.haystack));
      bool anchored = test.regex.find_first_of("^$\\") != test.regex.npos;
      for (auto [begin, end] : test.matches) {
        bool whole = begin == 0 && end == test.haystack.size();
        if (anchored && !whole) continue;
        EXPECT_TRUE(grammar->matches(test.haystack.substr(begin, end - begin)));
      }
    }
  }
  fmt::print("{} compiled, {} refused\n", compiled, refused);
  EXPECT_GT(compiled, 200);
}

std::string refusal(std::string_view pattern) {
  auto grammar = Grammar::from_regex(pattern);
  return grammar ? "accepted" : grammar.error().message;
}

TEST(Regex, RefusesByNameAndPosition) {
  EXPECT_EQ(refusal("a(?=b)"), R"re(pattern "a(?=b)": lookahead at byte 1 is not supported)re");
  EXPECT_EQ(refusal("a(?<!b)"), R"re(pattern "a(?<!b)": lookbehind at byte 1 is not supported)re");
  EXPECT_EQ(refusal("(a)\\1"),
            R"re(pattern "(a)\\1": a backreference at byte 3 is not supported)re");
  EXPECT_EQ(refusal("(?>a)"), R"re(pattern "(?>a)": an atomic group at byte 0 is not supported)re");
  EXPECT_EQ(refusal("a\\b"), R"re(pattern "a\\b": a word boundary at byte 1 is not supported)re");
  EXPECT_EQ(refusal("a++"),
            R"re(pattern "a++": a possessive quantifier at byte 2 is not supported)re");
  EXPECT_EQ(refusal("(a"), R"re(pattern "(a": an unclosed group at byte 0)re");
  EXPECT_EQ(refusal("a)"), R"re(pattern "a)": unmatched ) at byte 1)re");
  EXPECT_EQ(refusal("*"), R"re(pattern "*": a quantifier after nothing at byte 0)re");
  EXPECT_EQ(refusal("[b-a]"), R"re(pattern "[b-a]": a range whose ends are swapped at byte 0)re");
  EXPECT_EQ(refusal("\xff"), "the pattern is not UTF-8 at byte 0");
  EXPECT_EQ(refusal("[^\\x00-\\x{10FFFF}]"), "the grammar accepts no text at all");
}

TEST(Regex, HostilePatternsEndSoon) {
  EXPECT_TRUE(Grammar::from_regex("(a+)+$")->matches(std::string(1000, 'a')));
  auto counted = Grammar::from_regex("a{1,100000}");
  ASSERT_TRUE(counted.has_value()) << counted.error().message;
  EXPECT_TRUE(counted->matches(std::string(100'000, 'a')));
  EXPECT_FALSE(counted->matches(std::string(100'001, 'a')));
  EXPECT_FALSE(counted->matches(""));
  auto tail = Grammar::from_regex("(?:a|b)*a(?:a|b){200}");
  ASSERT_TRUE(tail.has_value()) << tail.error().message;
  EXPECT_TRUE(tail->matches("ba" + std::string(200, 'b')));
  EXPECT_FALSE(tail->matches("bb" + std::string(200, 'b')));
  EXPECT_TRUE(refusal(std::string(10'000, '(')).contains("nested too deeply"));
  EXPECT_TRUE(refusal("a{1,9999999}").contains("beyond"));
  EXPECT_TRUE(refusal("(.{1,1000}a){1,1000}").contains("too large"));
  EXPECT_TRUE(refusal("(?:a{0,1000}b?){0,1000}(?:\\p{L}{1,1000}){1,1000}").contains("too large"));
}

TEST(Regex, CountersAreExactWhateverTheBounds) {
  for (const char* pattern :
       {"(?:ab|c){100,20000}", "(?:[a-c]{2}|d){70,90}", "x(?:a?){1000}y", "(?:é|a){99,101}"}) {
    auto grammar = Grammar::from_regex(pattern);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  }
  auto grammar = Grammar::from_regex("(?:ab|c){100,20000}");
  auto times = [](int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += i % 2 == 0 ? "ab" : "c";
    return text;
  };
  EXPECT_FALSE(grammar->matches(times(99)));
  EXPECT_TRUE(grammar->matches(times(100)));
  EXPECT_TRUE(grammar->matches(times(20'000)));
  EXPECT_FALSE(grammar->matches(times(20'001)));
  EXPECT_TRUE(Grammar::from_regex("x(?:a?){1000}y")->matches("xy"));
}

}  // namespace
}  // namespace banyan::regex_test
