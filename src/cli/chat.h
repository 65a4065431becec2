// A conversation with a model: its history, its sampling settings, and the /commands that change
// them.
//
// Replies go to stdout, everything else to stderr. One thread; the Llm must outlive the Chat.
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
  Json json;  // as passed to the template; null: none
  std::vector<Tool> declared = {};
};

// Parses at least one tool in OpenAI's format: JSON text or a file.
Result<ChatTools> read_chat_tools(const std::string& text_or_file);

struct ChatSettings {
  SamplingParams sampling;
  std::optional<uint64_t> seed;           // random per reply if unset
  std::optional<int64_t> max_new_tokens;  // the rest of the context if unset
  GenerationOptions options;              // its max_new_tokens comes from the field above
  std::string system;                     // system message; empty: none
  bool one_question = false;              // nobody is there to type commands
  ChatTools tools = {};
  Json variables = Json::object();  // for the chat template
};

// Without a chat template, the model continues a text: each message is appended as a line, and the
// model's reply follows.
class Chat {
 public:
  enum class Next { kGoOn, kLeave };

  // `llm` must have a tokenizer.
  Chat(Llm& llm, ChatSettings settings);

  // kUnsupported if there are tools whose call format for this model is unknown.
  Status check_tools() const;

  // A /command.
  Next command(std::string_view line);

  // Answers `message` on stdout. Without a chat template, an empty message continues the text. If
  // the last reply called tools, `message` is the result of the first pending call. An error leaves
  // the conversation unchanged. Ctrl-C ends the reply and keeps the part so far.
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
  std::vector<Json> pending_;      // tool calls without a result yet
  std::string text_;               // replaces messages_ without a chat template
  int64_t used_tokens_ = 0;        // of the context, up to the last reply
};

}  // namespace banyan::cli
