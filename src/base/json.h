// JSON for small documents whose key order matters: config.json, messages, tool definitions.
//
// Limits are enforced while parsing, so the cost of a hostile document is bounded. Large flat
// tables (a vocabulary, a tensor index) are read with simdjson instead: ordered_json looks keys up
// linearly.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  size_t bytes_max = 16 << 20;
  int depth_max = 64;
  size_t keys_per_object_max = 4096;
};

// Parses one document. Rejects invalid UTF-8, trailing bytes, numbers outside f64, duplicate keys
// and anything past `limits`; the error gives `what` and the byte position.
Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});

}  // namespace banyan
