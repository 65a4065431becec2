// OpenAI's custom tools, whose input is free text or text of a grammar. Templates, grammars and
// parsers only support functions, so such a tool becomes a function with one string parameter,
// `input`.
//
// Stateless; thread-safe.
#pragma once

#include <string>

#include "base/json.h"
#include "server/fields/tools.h"

namespace banyan {

// Converts {"name", "description", "format"} to a function declaration. Accepts the format of
// either API: {"type": "grammar", "syntax", "definition"}, or the last two within "grammar".
Result<Json> custom_tool_function(const Json& custom, const std::string& place);

// Reads tools, tool_choice and parallel_tool_calls of a chat, with custom tools as functions.
ToolRequest read_openai_tools(RequestFields& fields);

// Converts custom tool calls in a chat's messages to function calls.
Status convert_custom_calls(Json& messages);

}  // namespace banyan
