#include "server/http/target.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/percent.h"
#include "base/quote.h"

namespace banyan {
namespace {

// `plus_is_space`: decode + as a space, as in forms and query strings.
Result<std::string> decode_part(std::string_view text, bool plus_is_space) {
  std::string spaced(text);
  if (plus_is_space) std::ranges::replace(spaced, '+', ' ');
  Result<std::string> decoded = percent_decode(spaced);
  if (!decoded) {
    return invalid_argument("the target {} has a bad escape: {}", quote(text),
                            decoded.error().message);
  }
  auto is_control = [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; };
  if (std::ranges::any_of(*decoded, is_control)) {
    return invalid_argument("the target {} has control characters", quote(text));
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
  result.path = TRY(decode_part(target.substr(0, mark), false));
  std::string_view query = target.substr(std::min(mark + 1, target.size()));
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.empty()) continue;
    size_t equals = std::min(pair.find('='), pair.size());
    std::string name = TRY(decode_part(pair.substr(0, equals), true));
    std::string_view value = pair.substr(std::min(equals + 1, pair.size()));
    result.query.emplace_back(std::move(name), TRY(decode_part(value, true)));
  }
  return result;
}

}  // namespace banyan
