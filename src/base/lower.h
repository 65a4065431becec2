// Capital letters of ASCII texts.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace banyan {

// `text` with 'a' to 'z' for 'A' to 'Z'; everything else as it is, whatever the locale.
inline std::string lower_ascii(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

}  // namespace banyan
