// json.dumps, as called by the tojson filter of chat templates.
#pragma once

#include <optional>
#include <string>

#include "jinja/runtime.h"

namespace banyan::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // indentation per level; absent: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

Result<std::string> dump_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace banyan::jinja
