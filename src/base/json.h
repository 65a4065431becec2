// JSON for small documents whose key order matters: config.json, messages, tool definitions.
//
// Limits are enforced while parsing, so a hostile document costs no more than they allow. Large
// flat tables (a vocabulary, a tensor index) are read with simdjson where they are needed:
// ordered_json looks keys up linearly.
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

// Parses one document. Refused, naming `what` and the byte position: invalid UTF-8, trailing
// bytes, numbers outside f64, duplicate keys, and anything past `limits`.
Result<Json> parse_json(std::string_view text, std::string_view what, JsonLimits limits = {});

}  // namespace banyan
