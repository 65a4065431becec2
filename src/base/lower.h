// ASCII lower case.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace banyan {

// `text` with 'A' to 'Z' in lower case and everything else unchanged, in any locale.
inline std::string lower_ascii(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

}  // namespace banyan
