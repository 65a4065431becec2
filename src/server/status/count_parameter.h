// Reads a number from a request's query: /radix_tree?limit=512. Stateless; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "banyan/status.h"
#include "server/http/http.h"

namespace banyan {

// From 1 to `max`; `otherwise` if absent.
Result<int64_t> count_parameter(const HttpRequest& request, std::string_view name,
                                int64_t otherwise, int64_t max);

}  // namespace banyan
