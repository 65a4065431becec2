// Base64 with the standard alphabet, padded (RFC 4648, section 4). Stateless; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace banyan {

std::string to_base64(std::string_view bytes);

// Padding may be missing. Nothing if the text has other characters or a length that no bytes have.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace banyan
