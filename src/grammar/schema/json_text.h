// Canonical JSON spelling in grammars, as JSON.stringify and nlohmann write it: each string has one
// form, and two strings never share one.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace banyan {

// A character inside quotes: itself, or its escape (the short one if there is one).
std::string json_escape(char c);
// `text` in quotes.
std::string json_quoted(std::string_view text);

// Whether a number is an integer, of any size.
bool is_whole(const Json& number);

}  // namespace banyan
