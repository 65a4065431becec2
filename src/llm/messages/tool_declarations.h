// Tools as OpenAI's clients declare them: [{"type": "function", "function": {"name", ...}}].
//
// Stateless; safe from many threads.
#pragma once

#include <vector>

#include "llm/messages/tool_calls.h"

namespace banyan {

// kInvalidArgument says what is wrong and where, to follow the list's name: "[0].function.name must
// be a string".
Result<std::vector<Tool>> read_tool_declarations(const Json& list);

}  // namespace banyan
