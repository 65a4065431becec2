// What every protocol of chats has in common: from messages to a prompt with its grammar, and from
// an output's text to an assistant's message. A protocol brings its messages and tools into the
// form that chat templates know, which is OpenAI's, and writes the message in its own.
//
// Stateless but for MessageStream, which belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "llm/chat_prompt.h"
#include "llm/messages/message_parser.h"
#include "server/fields/sampling.h"
#include "server/fields/tools.h"
#include "server/generation.h"

namespace banyan {

struct ChatRequest {
  ChatPrompt prompt;
  ToolRequest tools;
  PromptRequest options;                            // the prompt itself is filled in from `prompt`
  bool separate_reasoning = true;                   // from the content
  std::optional<int64_t> thinking_tokens_max = {};  // wins over that of `options`
};

// Tells templates that ask whether to think at all, unless `variables` do already.
void set_thinking(Json& variables, bool thinks);
// The same by OpenAI's reasoning_effort, which some templates read; "": the template decides.
void set_reasoning_effort(Json& variables, const std::string& effort);

// The chat through the template, with the server's own variables where it has none of that name.
Parsed<std::string> render_prompt(const RequestContext& context, ChatPrompt prompt);

// The tokens of that.
Parsed<size_t> count_prompt_tokens(const RequestContext& context, ChatPrompt prompt);

// Adds the chat to `plan`, or says what of it is wrong by the fields "messages" and "tools". The
// result is how its answers are to be read.
Parsed<MessageParserOptions> plan_messages(const RequestContext& context, ChatRequest chat,
                                           GenerationPlan& plan);

// One choice's text on its way to a message.
class MessageStream {
 public:
  explicit MessageStream(const MessageParserOptions& options) : parser_(options) {}

  // What the event that `delta` came of adds to the message.
  MessageDelta take(const Choice& choice, const TextDelta& delta);

  int64_t reasoning_tokens() const { return reasoning_tokens_; }  // marks included
  size_t calls() const { return parser_.calls(); }                // that have begun

 private:
  void count_token(bool reasoned);

  MessageParser parser_;
  int64_t reasoning_tokens_ = 0, undecided_tokens_ = 0;
};

}  // namespace banyan
