// White space in ASCII text: options, marks, lines of data.
#pragma once

#include <algorithm>
#include <string_view>

namespace banyan {

constexpr std::string_view kSpace = " \t\r\n";

// `text` without leading and trailing space.
inline std::string_view trim_space(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

}  // namespace banyan
