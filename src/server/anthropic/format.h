// The shapes of Anthropic's Messages API that more than one of its endpoints writes.
#pragma once

#include <string_view>

#include "base/json.h"

namespace banyan {

// {"type": "error", "error": {"type", "message"}}, with Anthropic's type for the status.
Json anthropic_error(int status, std::string_view message, std::string_view code);

}  // namespace banyan
