// Numbers in the query of a request's target: /radix_tree?limit=512.
#pragma once

#include <cstdint>
#include <string_view>

#include "banyan/status.h"
#include "server/http/http.h"

namespace banyan {

// From 1 to `max`; `otherwise` where there is none.
Result<int64_t> count_parameter(const HttpRequest& request, std::string_view name,
                                int64_t otherwise, int64_t max);

}  // namespace banyan
