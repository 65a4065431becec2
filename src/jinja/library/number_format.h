// Formatting of digits, shared by the % operator and the format mini-language.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/runtime.h"

namespace banyan::jinja {

// Consumes decimal digits from the front of `text`; nothing if there are none.
Result<std::optional<int64_t>> take_number(std::string_view& text);
// Converts a number to a character; rejects surrogates, which UTF-8 cannot encode.
Result<char32_t> to_code_point(int64_t value);
uint64_t magnitude(int64_t value);
std::string unsigned_digits(uint64_t value, int base, bool upper);
// The digits of a non-negative number; `conversion` is one of e, E, f, F, g, G.
Result<std::string> float_digits(Runtime& rt, double value, char conversion, int64_t precision,
                                 bool alternate);

}  // namespace banyan::jinja
