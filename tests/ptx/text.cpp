#include "ptx/text.h"

#include <algorithm>
#include <charconv>

namespace banyan::ptx {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

void blank(std::string& text, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

// The end of a label that begins here, after its colon; 0 if none does.
size_t label_end(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  size_t colon = text.find_first_not_of(kSpaces, end);
  bool is_label = end > 0 && colon != text.npos && text[colon] == ':' &&
                  text.substr(colon).substr(0, 2) != "::";
  return is_label ? colon + 1 : 0;
}

}  // namespace

void blank_comments(std::string& text) {
  for (size_t at = text.find('/'); at < text.size(); at = text.find('/', at + 1)) {
    if (text.compare(at, 2, "//") == 0) blank(text, at, std::min(text.find('\n', at), text.size()));
    if (text.compare(at, 2, "/*") == 0) {
      size_t end = text.find("*/", at);
      blank(text, at, end == text.npos ? text.size() : end + 2);
    }
  }
  for (std::string_view word : {".loc", ".file"}) {
    for (size_t at = text.find(word); at < text.size(); at = text.find(word, at + 1)) {
      if (std::isspace(static_cast<unsigned char>(text[at + word.size()]))) {
        blank(text, at, std::min(text.find('\n', at), text.size()));
      }
    }
  }
}

std::vector<Statement> statements(std::string_view body, int line) {
  std::vector<Statement> all;
  for (size_t at = 0;;) {
    size_t begin = std::min(body.find_first_not_of(kSpaces, at), body.size());
    line += static_cast<int>(std::ranges::count(body.substr(at, begin - at), '\n'));
    if (begin == body.size()) return all;
    std::string_view rest = body.substr(begin);
    size_t length = 1;
    if (rest[0] == '{' || rest[0] == '}') {
      all.push_back(
          {rest[0] == '{' ? Statement::kOpen : Statement::kClose, rest.substr(0, 1), line});
    } else if (size_t end = label_end(rest); end > 0) {
      length = end;
      all.push_back({Statement::kLabel, trim(rest.substr(0, end - 1)), line});
    } else if (rest[0] != ';') {
      length = rest.find(';');
      if (length == rest.npos) fail("line {}: there is no ; after {:.60}", line, rest);
      auto kind = rest[0] == '.' ? Statement::kDirective : Statement::kInstruction;
      all.push_back({kind, trim(rest.substr(0, length)), line});
    }
    line += static_cast<int>(std::ranges::count(rest.substr(0, length), '\n'));
    at = begin + length;
  }
}

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (trim(text).empty()) return parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '{' || text[i] == '[' ? 1 : text[i] == '}' || text[i] == ']' ? -1 : 0;
    if (text[i] != separator || depth > 0) continue;
    parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  for (size_t at = text.find_first_not_of(kSpaces); at < text.size();) {
    size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    all.push_back(text.substr(at, end - at));
    at = std::min(text.find_first_not_of(kSpaces, end), text.size());
  }
  return all;
}

int64_t parse_integer(std::string_view text) {
  std::string_view digits = text;
  bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    base = 16;
    digits.remove_prefix(2);
  }
  if (digits.ends_with('U')) digits.remove_suffix(1);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    fail("'{}' is not an integer", text);
  }
  return static_cast<int64_t>(negative ? -value : value);
}

}  // namespace banyan::ptx
