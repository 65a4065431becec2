// Renders a conversation in OpenAI's format with the model's chat template.
//
// Messages are untrusted: whatever a template could trip over is refused here, with the message's
// index. Fields unknown to this code (tool_calls, tool_call_id, name, reasoning_content) reach the
// template unchanged.
//
// Stateless; thread-safe.
#pragma once

#include <string>

#include "banyan/llm.h"
#include "base/json.h"

namespace banyan {

struct ChatPrompt {
  // [{role, content, ...}]. Content is a string, null, or a list of parts {type: "text", text},
  // whose texts are joined with newlines. Tool call arguments may be a string of JSON; the template
  // gets the object.
  Json messages;
  Json tools;                       // a list of objects, or null
  Json documents;                   // likewise
  Json variables = Json::object();  // further template variables: enable_thinking, ...
  std::string chat_template = {};   // replaces the model's; "": use the model's
  bool add_generation_prompt = true;
  // The last message, which must be the assistant's, is the start of the answer: the prompt ends
  // with it.
  bool continue_final_message = false;
};

// Errors: kInvalidArgument names the message and the field; kUnsupported: no template, or images,
// audio or files in a message. `variables` must not set what this request has fields for.
Result<std::string> render_chat(const Llm& llm, ChatPrompt prompt);

}  // namespace banyan
