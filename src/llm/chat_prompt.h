// A conversation, as OpenAI's clients write it, to the text that a model's chat template makes.
//
// Messages are outside bytes: what a template would trip over is refused here, by the message's
// place. Fields that we do not know (tool_calls, tool_call_id, name, reasoning_content) reach the
// template as they are.
//
// Stateless; safe from many threads at once.
#pragma once

#include <string>

#include "banyan/llm.h"
#include "base/json.h"

namespace banyan {

struct ChatPrompt {
  // [{role, content, ...}]. Content is a string, null, or a list of parts {type: "text", text},
  // whose texts are joined by newlines. A tool call's arguments may be JSON in a string: the
  // template gets the object.
  Json messages;
  Json tools;                       // a list of objects, or null
  Json documents;                   // the same
  Json variables = Json::object();  // more for the template: enable_thinking, ...
  std::string chat_template = {};   // in place of the model's; "": the model's
  bool add_generation_prompt = true;
  // The last message, an assistant's, is the beginning of the answer: its text comes last.
  bool continue_final_message = false;
};

// kInvalidArgument names the message and the field; kUnsupported: no template, or images, audio and
// files in a message. `variables` may not name what this request has fields for.
Result<std::string> render_chat(const Llm& llm, ChatPrompt prompt);

}  // namespace banyan
