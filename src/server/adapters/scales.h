// llama.cpp's choice of adapters: a list of {id, scale}, where ids number the adapters by name.
#pragma once

#include <span>
#include <string>

#include "banyan/status.h"
#include "base/json.h"

namespace banyan {

// The adapter whose scale is 1; "" if none is. Other scales, and several adapters at once, are
// kUnsupported.
Result<std::string> adapter_of_scales(const Json& scales, std::span<const std::string> adapters);

}  // namespace banyan
