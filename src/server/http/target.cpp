#include "server/http/target.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// `plus_is_space`: decode + as a space, as in forms and query strings.
Result<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus_is_space) c = ' ';
    if (c == '%') {
      int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      int low = high >= 0 ? hex_value(text[i + 2]) : -1;
      if (low < 0) return invalid_argument("the target {} has a bad % escape", quote(text));
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      return invalid_argument("the target {} has control characters", quote(text));
    }
    decoded += c;
  }
  return decoded;
}

// The path of "http://host/path"; a plain path is returned unchanged.
Result<std::string_view> without_authority(std::string_view target) {
  if (target.starts_with('/') || target == "*") return target;
  for (std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    size_t path = target.find_first_of("/?", scheme.size());
    if (path == target.npos) return std::string_view("/");
    if (target[path] == '/') return target.substr(path);
  }
  return invalid_argument("the target {} is not a path", quote(target));
}

}  // namespace

Result<Target> parse_target(std::string_view text) {
  std::string_view target = TRY(without_authority(text));
  target = target.substr(0, target.find('#'));
  size_t mark = std::min(target.find('?'), target.size());
  Target result;
  result.path = TRY(percent_decode(target.substr(0, mark), false));
  std::string_view query = target.substr(std::min(mark + 1, target.size()));
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) continue;
    size_t equals = std::min(pair.find('='), pair.size());
    std::string name = TRY(percent_decode(pair.substr(0, equals), true));
    std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    result.query.emplace_back(std::move(name), TRY(percent_decode(value, true)));
  }
  return result;
}

}  // namespace banyan
