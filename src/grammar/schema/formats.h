// The patterns of JSON schema's `format`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace banyan {

// A pattern (matched in full) that accepts only valid values of the format and everything that
// people and models usually write; leap seconds, for example, are left out. Nothing for an unknown
// format.
std::optional<std::string> format_pattern(std::string_view format);
// Formats that only hint at a form field or a generated type ("textarea", "int32", ...).
bool is_hint_format(std::string_view format);

}  // namespace banyan
