// Foreign text inside our messages: bounded in length and free of control characters, so that a
// file's tensor name cannot fill a log or drive a terminal.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

// `text` in double quotes. Quotes, backslashes, control characters and bytes that are not UTF-8
// are escaped (\xNN); what lies beyond `bytes_max` is replaced by "..." and the length.
std::string quote(std::string_view text, size_t bytes_max = 120);

}  // namespace banyan
