// Decodes percent-encoding, as in URLs. Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

// Replaces escapes such as "%2F" by their bytes. kInvalidArgument: a % without two hex digits,
// which the error quotes.
Result<std::string> percent_decode(std::string_view text);

}  // namespace banyan
