#include "server/json/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>

namespace banyan {
namespace {

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
}

char short_escape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

void append_escaped(std::string& out, std::string_view text) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) continue;
    out.append(text, begin, i - begin);
    begin = i + 1;
    if (char letter = short_escape(text[i])) {
      out += {'\\', letter};
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(text[i]));
    }
  }
  out.append(text, begin);
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  append_escaped(out, text);
  out += '"';
}

void append_logprob(std::string& out, float logprob) {
  constexpr float kLowest = -9999;
  fmt::format_to(std::back_inserter(out), "{}", logprob >= kLowest ? logprob : kLowest);
}

void append_integer(std::string& out, int64_t value) {
  fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

}  // namespace banyan
