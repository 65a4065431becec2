// Translates the body of an Anthropic Messages request into the form that chat templates expect.
//
// Stateless; thread-safe.
#pragma once

#include "server/chat.h"
#include "server/fields/request.h"

namespace banyan {

// Reads system, messages, tools, tool_choice, thinking and output_config. Errors are recorded in
// `fields`. Of `chat.options`, only a thinking budget is set.
void read_anthropic_chat(RequestFields& fields, ChatRequest& chat);

// Refuses edits in context_management that would change the prompt. Returns whether any edits are
// given, as the answer then says that none was applied.
bool read_context_edits(RequestFields& fields, int64_t context_tokens);

}  // namespace banyan
