// Files whose first line is a key or a password.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

// Without its line break. Errors name `option`: kInvalidArgument if the line is empty, kIo.
Result<std::string> read_first_line(std::string_view option, const std::string& file);

}  // namespace banyan
