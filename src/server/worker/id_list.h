// Lists of token ids in the bodies of workers' endpoints: the number of ids, then the ids, 4
// little-endian bytes each. As JSON, a long prompt would take longer than everything else that is
// done for it on its way to the engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "banyan/token.h"

namespace banyan {

void append_ids(std::span<const TokenId> ids, std::string& out);
// Takes a list off the front of `bytes`. kInvalidArgument: they hold none; `name` is the list's.
Result<std::vector<TokenId>> take_ids(std::string_view& bytes, std::string_view name);

}  // namespace banyan
