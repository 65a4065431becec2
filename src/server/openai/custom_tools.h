// OpenAI's custom tools, whose input is free text or a text of a grammar. Templates, grammars and
// parsers know functions: to them such a tool is a function of one string, `input`.
//
// Stateless; safe from many threads at once.
#pragma once

#include <string>

#include "base/json.h"
#include "server/fields/tools.h"

namespace banyan {

// {"name", "description", "format"} as a function's declaration. A format of either API is taken:
// {"type": "grammar", "syntax", "definition"}, or both of these in "grammar".
Result<Json> custom_tool_function(const Json& custom, const std::string& place);

// tools, tool_choice and parallel_tool_calls of a chat, custom tools as functions.
ToolRequest read_openai_tools(RequestFields& fields);

// Calls of custom tools in a chat's messages, as calls of functions.
Status convert_custom_calls(Json& messages);

}  // namespace banyan
