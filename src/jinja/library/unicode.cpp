#include "jinja/library/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace banyan::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  return is_upper(c) || is_lower(c) || is_title(c);
}

// Removes the last code point. REQUIRES: !text.empty().
void drop_last(std::string_view& text) {
  size_t start = text.size() - 1;
  while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80) --start;
  text = text.substr(0, start);
}

// True if upper or title case of `c` has more than one character. That holds if its case folding
// does, with two exceptions.
bool grows_in_upper_case(char32_t c) {
  if (c < 0x80 || c == 0x130 || c == 0x1e9e) return false;
  utf8proc_int32_t folded[4];
  int boundary = 0;
  return utf8proc_decompose_char(static_cast<int32_t>(c), folded, 4, UTF8PROC_CASEFOLD, &boundary) >
         1;
}

}  // namespace

char32_t last_code_point(std::string_view text) {
  drop_last(text);
  return unicode::decode(text.data() + text.size()).code;
}

int64_t count_code_points(std::string_view text) {
  int64_t count = 0;
  for (char c : text) count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

size_t byte_offset(std::string_view text, int64_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80 && index-- == 0) return at;
  }
  return at;
}

bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247c) ||
         (c >= 0x2488 && c <= 0x2490);
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_upper(char32_t c) {
  return utf8proc_isupper(static_cast<int32_t>(c)) != 0;
}
bool is_lower(char32_t c) {
  return utf8proc_islower(static_cast<int32_t>(c)) != 0;
}
bool is_title(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

Result<std::string> change_case(std::string_view text, Case how) {
  std::string out;
  out.reserve(text.size());
  bool inside_word = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const bool first = rest.size() == text.size();
    const char32_t c = next_code_point(rest);
    const auto code = static_cast<utf8proc_int32_t>(c);
    const bool lower = how == Case::kLower || (how == Case::kTitle && inside_word) ||
                       (how == Case::kCapitalize && !first);
    // One maps to two characters; the other depends on its neighbours.
    if (lower ? c == 0x130 || c == 0x3a3 : grows_in_upper_case(c)) {
      return unsupported("changing the case of U+{:04X} is not supported in chat templates",
                         static_cast<uint32_t>(c));
    }
    const auto changed = lower                 ? utf8proc_tolower(code)
                         : how == Case::kUpper ? utf8proc_toupper(code)
                                               : utf8proc_totitle(code);
    unicode::append(out, static_cast<char32_t>(changed));
    inside_word = is_cased(c);
  }
  return out;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  std::string_view rest = text.substr(from);
  if (part.empty()) return from;
  if (part.size() > rest.size())
    return std::string_view::npos;  // also because an empty view may be null
  const void* found = ::memmem(rest.data(), rest.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<const char*>(found) - text.data();
}

size_t rfind_text(std::string_view text, std::string_view part) {
  // Searches mirrored copies forwards: memmem is linear, string_view::rfind is not.
  std::string mirrored(text.rbegin(), text.rend());
  size_t found = find_text(mirrored, std::string(part.rbegin(), part.rend()));
  return found == std::string_view::npos ? found : text.size() - found - part.size();
}

std::string_view strip_left(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = text;
    if (!is_space(next_code_point(rest))) break;
    text = rest;
  }
  return text;
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty() && is_space(last_code_point(text))) {
    drop_last(text);
  }
  return text;
}

namespace {

// The code points of `characters`, sorted for binary search.
std::u32string sorted_set(std::string_view characters) {
  std::u32string set;
  while (!characters.empty()) set += next_code_point(characters);
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace

std::string_view strip_left(std::string_view text, std::string_view characters) {
  std::u32string set = sorted_set(characters);
  while (!text.empty()) {
    std::string_view rest = text;
    if (!std::binary_search(set.begin(), set.end(), next_code_point(rest))) break;
    text = rest;
  }
  return text;
}

std::string_view strip_right(std::string_view text, std::string_view characters) {
  std::u32string set = sorted_set(characters);
  while (!text.empty() && std::binary_search(set.begin(), set.end(), last_code_point(text))) {
    drop_last(text);
  }
  return text;
}

}  // namespace banyan::jinja
