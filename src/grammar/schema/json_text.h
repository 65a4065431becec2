// How grammars spell JSON: one spelling for each text, the one that JSON.stringify and nlohmann
// write, so that a value has one form and two values never share one.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace banyan {

// A character as it stands between quotes: itself, or its escape (the short one if there is one).
std::string json_escape(char c);
// `text` in quotes.
std::string json_quoted(std::string_view text);

// Whether a number has a value that is whole; its size does not matter.
bool is_whole(const Json& number);

}  // namespace banyan
