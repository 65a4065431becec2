// Quotes untrusted text in our messages: bounded in length and without control characters, so that
// a file's tensor name cannot fill a log or control a terminal.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

// `text` in double quotes. Escapes quotes, backslashes, control characters and invalid UTF-8
// (\xNN). Text past `bytes_max` is replaced by "..." and the length.
std::string quote(std::string_view text, size_t bytes_max = 120);

}  // namespace banyan
