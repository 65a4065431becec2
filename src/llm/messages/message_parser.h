// A model's output, as it comes, to the parts of an assistant's message: reasoning, content, calls
// of tools. Puts llm/messages/reasoning.h, llm/messages/tool_call_parser.h and
// llm/messages/harmony.h together.
//
// One per sequence; belongs to one thread.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "llm/messages/harmony.h"
#include "llm/messages/message_delta.h"
#include "llm/messages/reasoning.h"
#include "llm/messages/tool_call_parser.h"

namespace banyan {

// How a model writes; null: it does not.
struct ChatSyntax {
  const ToolCallFormat* tool_calls = nullptr;
  const ReasoningFormat* reasoning = nullptr;

  // Harmony is messages rather than marks.
  bool is_harmony() const;
  // Whether the marks are special tokens, which the text then has to have in it.
  bool has_special_marks() const;
};
// By names of formats, or "auto" and "none".
Result<ChatSyntax> find_chat_syntax(std::string_view tool_calls, std::string_view reasoning,
                                    std::string_view chat_template);

struct MessageParserOptions {
  ChatSyntax syntax;  // what of it is looked for
  ReasoningStart start = ReasoningStart::kMark;
  std::vector<Tool> tools;
  // A call ends reasoning that has no end mark, which some models write. Not where a grammar sees
  // to the mark: a call's mark in the reasoning is then part of it.
  bool calls_end_reasoning = true;
  // Reasoning is followed but stays in the content, with its marks. Harmony's is always apart.
  bool keep_reasoning = false;
};

class MessageParser {
 public:
  explicit MessageParser(const MessageParserOptions& options);

  void push(std::string_view text, MessageDelta& out);
  // The output is over.
  void finish(MessageDelta& out);
  // Calls that have begun.
  size_t calls() const;
  // Whether the text is in the reasoning, its marks included; none: it may yet turn out to be.
  std::optional<bool> in_reasoning() const;

 private:
  void push_content(std::string_view content, MessageDelta& out);

  std::optional<HarmonyParser> harmony_;
  std::optional<ReasoningParser> reasoning_;
  bool keep_reasoning_ = false;
  std::optional<ToolCallParser> tool_calls_;
};

// The message that a whole output is.
MessageDelta parse_message(const MessageParserOptions& options, std::string_view text);

}  // namespace banyan
