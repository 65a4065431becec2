// Parses tool declarations in OpenAI's format: [{"type": "function", "function": {"name", ...}}].
//
// Stateless; thread-safe.
#pragma once

#include <vector>

#include "llm/messages/tool_calls.h"

namespace banyan {

// kInvalidArgument says what is wrong and where. The message is written to follow the list's name:
// "[0].function.name must be a string".
Result<std::vector<Tool>> read_tool_declarations(const Json& list);

}  // namespace banyan
