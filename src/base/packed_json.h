// Lists of token ids in JSON, packed: 4 bytes for each instead of a value of 16 that is made and
// freed one by one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace banyan {

// parse_json, but packs lists of integers from 0 to 2^31 - 1: those under `keys` of the outermost
// object, and those in a list there. Other lists under these keys, and empty ones, stay as they
// are.
Result<Json> parse_packed_json(std::string_view text, std::string_view what, JsonLimits limits,
                               std::span<const std::string_view> keys);

bool is_packed(const Json& json);
// The number of integers. Requires is_packed(), as does the next.
size_t packed_size(const Json& json);
std::vector<int32_t> unpack(const Json& json);

}  // namespace banyan
