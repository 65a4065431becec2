#include "base/percent.h"

#include <charconv>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {

Result<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    std::string_view digits = text.substr(i + 1, 2);
    const char* end = digits.data() + digits.size();
    unsigned char byte = 0;
    if (digits.size() < 2 || std::from_chars(digits.data(), end, byte, 16).ptr != end) {
      return invalid_argument("{} is not % and two hex digits", quote(text.substr(i, 3)));
    }
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

}  // namespace banyan
