// A conversation with a model: what was said, how replies are drawn, and the /commands that change
// either.
//
// Replies go to stdout, everything else to stderr. One thread; the Llm outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/llm.h"
#include "banyan/status.h"
#include "base/json.h"
#include "llm/messages/message_parser.h"

namespace banyan::cli {

// Tools that the model may call.
struct ChatTools {
  Json json;  // as the template gets them; null: none
  std::vector<Tool> declared = {};
};

// As OpenAI's clients declare them, one at least: JSON in place or in a file.
Result<ChatTools> read_chat_tools(const std::string& text_or_file);

struct ChatSettings {
  SamplingParams sampling;
  std::optional<uint64_t> seed;           // drawn for each reply if not given
  std::optional<int64_t> max_new_tokens;  // the rest of the context if not given
  GenerationOptions options;              // its max_new_tokens is the one above
  std::string system;                     // system message; empty: none
  ChatTools tools = {};
  Json variables = Json::object();  // for the chat template
};

// A model without a chat template continues a text: every message is a line added to it, and what
// the model says follows.
class Chat {
 public:
  enum class Next { kGoOn, kLeave };

  // `llm` has a tokenizer.
  Chat(Llm& llm, ChatSettings settings);

  // kUnsupported if there are tools, and nobody knows how the model calls them.
  Status check_tools() const;

  // A /command.
  Next command(std::string_view line);

  // Answers `message` on stdout; without a chat template an empty one lets the text go on. If the
  // last reply called tools, `message` is what the first of them gave back. On an error the
  // conversation is as before. Ctrl-C ends the reply, which stays as far as it came.
  Status reply(const std::string& message);

 private:
  Result<TextRequest> request_with(const Json& message) const;
  Result<TextRequest> fitting_request(const Json& message);
  bool drop_oldest();
  Status answer(const Json& message);
  void take_reply(const std::string& prompt, const std::string& text);
  void ask_for_result() const;
  void report(const Generation& g) const;
  void reset();
  void set_system(std::string_view text);
  Status set(std::string_view name, std::string_view value);
  Status set_json(std::string_view schema);
  Status set_tools(std::string_view source);
  Status set_thinking(std::string_view value);
  void show() const;
  int64_t context_tokens() const;

  Llm& llm_;
  ChatSettings settings_;
  ChatSyntax syntax_;
  Json messages_ = Json::array();  // without the system message
  std::vector<Json> pending_;      // calls of tools that have not given anything back
  std::string text_;               // in place of messages_ without a chat template
  int64_t used_tokens_ = 0;        // of the context, up to the last reply
};

}  // namespace banyan::cli
