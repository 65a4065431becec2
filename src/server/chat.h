// What all chat protocols share: messages to a prompt with its grammar, and output text back to an
// assistant message. Each protocol translates its messages and tools into the form that chat
// templates expect (OpenAI's), and formats the resulting message itself.
//
// Stateless, except MessageStream, which belongs to one thread.
#pragma once

#include <cstdint>

#include "llm/chat_prompt.h"
#include "llm/messages/message_parser.h"
#include "server/fields/sampling.h"
#include "server/fields/tools.h"
#include "server/generation.h"

namespace banyan {

struct ChatRequest {
  ChatPrompt prompt;
  ToolRequest tools;
  PromptRequest options;           // the prompt itself comes from `prompt`
  bool separate_reasoning = true;  // separate it from the content
};

// Sets the template variables that turn thinking on or off, unless `variables` has them already.
void set_thinking(Json& variables, bool thinks);
// The same for OpenAI's reasoning_effort, which some templates read; "": the template decides.
void set_reasoning_effort(Json& variables, const std::string& effort);

// Reads OpenAI's `verbosity` for the template in the same way: "low", "medium" or "high".
void set_verbosity(Json& variables, RequestFields& fields);

// Renders the chat with the template. The server's template variables apply where the chat sets
// none.
Parsed<std::string> render_prompt(const RequestContext& context, ChatPrompt prompt);

// The number of tokens in that prompt.
Parsed<size_t> count_prompt_tokens(const RequestContext& context, ChatPrompt prompt);

// Adds the chat to `plan`, or returns an error in the field "messages" or "tools". The result says
// how to parse the answers.
Parsed<MessageParserOptions> plan_messages(const RequestContext& context, ChatRequest chat,
                                           GenerationPlan& plan);

// Parses one choice's text into a message, incrementally.
class MessageStream {
 public:
  explicit MessageStream(const MessageParserOptions& options) : parser_(options) {}

  // Returns what the event of `delta` adds to the message.
  MessageDelta take(const Choice& choice, const TextDelta& delta);

  int64_t reasoning_tokens() const { return reasoning_tokens_; }  // markers included
  size_t calls() const { return parser_.calls(); }                // tool calls started

 private:
  void count_token(bool reasoned);

  MessageParser parser_;
  int64_t reasoning_tokens_ = 0, undecided_tokens_ = 0;
};

}  // namespace banyan
