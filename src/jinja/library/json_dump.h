// json.dumps, as the tojson filter of chat templates calls it.
#pragma once

#include <optional>
#include <string>

#include "jinja/runtime.h"

namespace banyan::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // one level's indentation; absent: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

Result<std::string> dump_json(Runtime& rt, const Value& value, const JsonStyle& style);

}  // namespace banyan::jinja
