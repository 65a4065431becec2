// Compresses bodies as `Content-Encoding: gzip`. Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace banyan {

std::string gzip(std::string_view text);

}  // namespace banyan
