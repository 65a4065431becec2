#include "grammar/schema/json_text.h"

#include <fmt/format.h>

#include <cmath>

namespace banyan {

std::string json_escape(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20) return fmt::format("\\u{:04x}", c);
  return std::string(1, c);
}

std::string json_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) quoted += json_escape(c);
  return quoted + '"';
}

bool is_whole(const Json& number) {
  return number.is_number_integer() ||
         (number.is_number_float() && std::trunc(number.get<double>()) == number.get<double>());
}

}  // namespace banyan
