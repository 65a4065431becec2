// Formats sizes for people.
#pragma once

#include <cstdint>
#include <string>

namespace banyan {

// "141 GB": three significant digits, units of 1000.
std::string format_bytes(int64_t bytes);

// "9.41 M".
std::string format_count(int64_t count);

}  // namespace banyan
