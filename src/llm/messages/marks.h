// Finds markers in streamed text, and formats in a registry. Stateless; thread-safe.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/quote.h"
#include "base/space.h"

namespace banyan {

struct FoundMark {
  size_t at = std::string_view::npos;
  std::string_view mark;
};
// The first occurrence of any of `marks` in `text`; at equal positions the one listed first wins.
inline FoundMark find_mark(std::string_view text, std::span<const std::string_view> marks) {
  FoundMark first;
  for (std::string_view mark : marks) {
    size_t at = text.find(mark);
    if (at < first.at) first = {at, mark};
  }
  return first;
}

// The length of the longest suffix of `text` that is a proper prefix of one of `marks`.
inline size_t partial_mark(std::string_view text, std::span<const std::string_view> marks) {
  size_t longest = 0;
  for (std::string_view mark : marks) {
    for (size_t n = std::min(mark.size() - 1, text.size()); n > longest; --n) {
      if (text.ends_with(mark.substr(0, n))) longest = n;
    }
  }
  return longest;
}

// The format called `name`. "auto" selects the first whose markers occur in `chat_template`, or
// null; "none" is null. Entries have name, aliases and in_template; with an empty in_template,
// "auto" never selects them.
template <class Format>
Result<const Format*> find_format(std::span<const Format> formats, std::string_view name,
                                  std::string_view chat_template, std::string_view what) {
  if (name == "none") return nullptr;
  std::string known;
  for (const Format& format : formats) {
    bool fits = std::ranges::all_of(format.in_template, [&](std::string_view text) {
      return !text.empty() && chat_template.find(text) != chat_template.npos;
    });
    if (name != "auto") {
      fits = format.name == name || std::ranges::find(format.aliases, name) != format.aliases.end();
    }
    if (fits && !name.empty()) return &format;
    known += ", " + std::string(format.name);
  }
  if (name == "auto") return nullptr;
  return invalid_argument("{} is not a supported format of {}; use auto, none{}", quote(name), what,
                          known);
}

}  // namespace banyan
