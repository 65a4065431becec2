// Parses and percent-decodes the target of a request line, such as "/v1/models?limit=2". Stateless;
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "banyan/status.h"

namespace banyan {

struct Target {
  std::string path;  // begins with a slash, or is "*"
  std::vector<std::pair<std::string, std::string>> query;
};

// Accepts "/path?query" and, as HTTP/1.1 requires of servers, "http://host/path?query". Refuses
// other forms, a % without two hex digits, and control characters.
Result<Target> parse_target(std::string_view target);

}  // namespace banyan
