// Python's view of text: code points of a UTF-8 string, their classes and case. All text must be
// valid UTF-8; templates and variables are checked on input.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "banyan/status.h"
#include "unicode/unicode.h"

namespace banyan::jinja {

// Removes the first code point from `text` and returns it. REQUIRES: !text.empty().
inline char32_t next_code_point(std::string_view& text) {
  const auto [code, size] = unicode::decode(text.data());
  text.remove_prefix(size);
  return code;
}
char32_t last_code_point(std::string_view text);
int64_t count_code_points(std::string_view text);
// The byte offset of code point `index`, or text.size() if there are fewer.
size_t byte_offset(std::string_view text, int64_t index);

// str.isspace, isalpha, isdecimal, isdigit, isnumeric and isprintable of one code point.
inline bool is_space(char32_t c) {
  return (c >= 0x1c && c <= 0x1f) || unicode::is(c, unicode::kSpace);
}
inline bool is_alpha(char32_t c) {
  return unicode::is(c, unicode::kLetter);
}
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
inline bool is_numeric(char32_t c) {
  return unicode::is(c, unicode::kNumber);
}
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);

enum class Case { kUpper, kLower, kTitle, kCapitalize };
// Returns an error for the few characters whose case has several characters or depends on context.
Result<std::string> change_case(std::string_view text, Case how);

// The first and last position of `part`, or npos. Linear time for any input.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
size_t rfind_text(std::string_view text, std::string_view part);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);
inline std::string_view strip(std::string_view text) {
  return strip_left(strip_right(text));
}
// Like the functions above, but removes any of the code points of `characters`.
std::string_view strip_left(std::string_view text, std::string_view characters);
std::string_view strip_right(std::string_view text, std::string_view characters);

}  // namespace banyan::jinja
