// The patterns of JSON schema's `format`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace banyan {

// A pattern (matched in full) whose texts all have the format, and which has all that people and
// models write: not, for example, leap seconds. Nothing for an unknown format.
std::optional<std::string> format_pattern(std::string_view format);
// Formats that are only a hint to a form or a code generator ("textarea", "int32", ...).
bool is_hint_format(std::string_view format);

}  // namespace banyan
