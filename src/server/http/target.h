// The target of a request line, "/v1/models?limit=2", taken apart and percent-decoded.
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

// Takes "/path?query" and, as HTTP/1.1 asks of servers, "http://host/path?query". Refused: other
// forms, a % without two hex digits, and what decodes to control characters.
Result<Target> parse_target(std::string_view target);

}  // namespace banyan
