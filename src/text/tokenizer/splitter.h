// Hand-written equivalents of the regular expressions with which published tokenizers split text.
//
// They run several times faster than PCRE2 and use the character classes of Unicode 16. One of them
// (Kimi's) has class intersections, which PCRE2 cannot express. To add one, add a row with the
// exact pattern to the table in splitter.cpp.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace banyan {

// Part of a text: a match, or the text between two matches.
struct TextSpan {
  uint32_t begin, end;
  bool matched;
};

// Appends spans of `text` (valid UTF-8 under 4 GiB) that cover it in order.
using Splitter = void (*)(std::string_view text, std::vector<TextSpan>& spans);

// The splitter equivalent to `pattern`, or null.
Splitter find_splitter(std::string_view pattern);

// All patterns that find_splitter knows.
std::vector<std::string_view> known_patterns();

// The pattern of Kimi's tiktoken vocabulary, which only its Python code contains.
std::string_view kimi_pattern();

}  // namespace banyan
