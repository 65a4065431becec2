// A body of Anthropic's Messages API in the form that chat templates know.
//
// Stateless; safe from many threads at once.
#pragma once

#include "server/chat.h"
#include "server/fields/request.h"

namespace banyan {

// system, messages, tools, tool_choice, thinking and output_config. What is wrong is remembered by
// `fields`. Fields that limit the answer are not read here.
ChatRequest read_anthropic_chat(RequestFields& fields);

}  // namespace banyan
