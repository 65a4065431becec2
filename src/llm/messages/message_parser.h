// Parses streamed output into the parts of an assistant message: reasoning, content and tool calls.
// Combines llm/messages/reasoning.h, llm/messages/tool_call_parser.h and llm/messages/harmony.h.
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

// How a model marks tool calls and reasoning; null: it does not.
struct ChatSyntax {
  const ToolCallFormat* tool_calls = nullptr;
  const ReasoningFormat* reasoning = nullptr;

  // Harmony uses messages, not markers.
  bool is_harmony() const;
  // Whether the markers are special tokens. The text must then be decoded with them.
  bool has_special_marks() const;
};
// By format name, "auto" or "none".
Result<ChatSyntax> find_chat_syntax(std::string_view tool_calls, std::string_view reasoning,
                                    std::string_view chat_template);

struct MessageParserOptions {
  ChatSyntax syntax;  // the formats to parse
  ReasoningStart start = ReasoningStart::kMark;
  std::vector<Tool> tools;
  // A tool call ends reasoning without an end marker, which some models omit. False where a grammar
  // enforces the end marker: a call's marker within reasoning is then part of the reasoning.
  bool calls_end_reasoning = true;
  // Tracks reasoning but leaves it in the content, markers included. Harmony's is always separated.
  bool keep_reasoning = false;
};

class MessageParser {
 public:
  explicit MessageParser(const MessageParserOptions& options);

  void push(std::string_view text, MessageDelta& out);
  // Ends the output.
  void finish(MessageDelta& out);
  // The number of calls started.
  size_t calls() const;
  // Whether the text so far ends inside reasoning, markers included; nothing while undecided.
  std::optional<bool> in_reasoning() const;

 private:
  void push_content(std::string_view content, MessageDelta& out);

  std::optional<HarmonyParser> harmony_;
  std::optional<ReasoningParser> reasoning_;
  bool keep_reasoning_ = false;
  std::optional<ToolCallParser> tool_calls_;
};

// Parses a complete output.
MessageDelta parse_message(const MessageParserOptions& options, std::string_view text);

}  // namespace banyan
