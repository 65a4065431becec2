// Hand-written equals of the regular expressions that published tokenizers split text with.
//
// They run several times faster than PCRE2 and classify characters by Unicode 16; one of them
// (Kimi's) uses class intersections, which PCRE2 cannot express. To add one: a row in the table in
// splitter.cpp, keyed by the exact pattern.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace banyan {

// A part of a text: what a pattern matched, or what lies between two matches.
struct TextSpan {
  uint32_t begin, end;
  bool matched;
};

// Appends the spans of `text` (valid UTF-8 under 4 GiB), which cover it in order.
using Splitter = void (*)(std::string_view text, std::vector<TextSpan>& spans);

// The splitter that equals `pattern`, or null.
Splitter find_splitter(std::string_view pattern);

// All patterns that find_splitter knows.
std::vector<std::string_view> known_patterns();

// The pattern of Kimi's tiktoken vocabulary, which is stated only in its Python code.
std::string_view kimi_pattern();

}  // namespace banyan
