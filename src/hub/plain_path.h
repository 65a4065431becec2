// File names accepted from a hub: they cannot leave their folder and need no URL escapes.
// Stateless; thread-safe.
#pragma once

#include <algorithm>
#include <string_view>

namespace banyan {

inline bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && !name.starts_with('.') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

// Plain names separated by '/'.
inline bool is_plain_path(std::string_view path) {
  for (size_t slash; (slash = path.find('/')) != path.npos; path.remove_prefix(slash + 1)) {
    if (!is_plain_name(path.substr(0, slash))) return false;
  }
  return is_plain_name(path);
}

}  // namespace banyan
