// Formats shared by the endpoints of Anthropic's Messages API. Stateless; thread-safe.
#pragma once

#include <string_view>

#include "base/json.h"

namespace banyan {

// {"type": "error", "error": {"type", "message"}}, with Anthropic's type for the status.
Json anthropic_error(int status, std::string_view message, std::string_view code);

}  // namespace banyan
