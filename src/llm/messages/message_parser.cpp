#include "llm/messages/message_parser.h"

#include <utility>

#include "base/error.h"

namespace banyan {

Result<ChatSyntax> find_chat_syntax(std::string_view tool_calls, std::string_view reasoning,
                                    std::string_view chat_template) {
  return ChatSyntax{.tool_calls = TRY(find_tool_call_format(tool_calls, chat_template)),
                    .reasoning = TRY(find_reasoning_format(reasoning, chat_template))};
}

bool ChatSyntax::is_harmony() const {
  return (tool_calls != nullptr && tool_calls->style == ToolCallFormat::Style::kHarmony) ||
         (reasoning != nullptr && reasoning->begin.empty());
}

bool ChatSyntax::has_special_marks() const {
  return is_harmony() || (tool_calls != nullptr && tool_calls->special) ||
         (reasoning != nullptr && reasoning->special);
}

MessageParser::MessageParser(const MessageParserOptions& options)
    : keep_reasoning_(options.keep_reasoning) {
  const ChatSyntax& syntax = options.syntax;
  if (syntax.is_harmony()) {
    harmony_.emplace();
    return;
  }
  std::vector<std::string_view> marks;
  if (syntax.tool_calls != nullptr) {
    if (options.calls_end_reasoning) {
      marks = {syntax.tool_calls->section_begin, syntax.tool_calls->other_section_begin,
               syntax.tool_calls->begin};
    }
    tool_calls_.emplace(*syntax.tool_calls, options.tools);
  }
  if (syntax.reasoning != nullptr) {
    reasoning_.emplace(*syntax.reasoning, options.start, std::move(marks));
  }
}

void MessageParser::push(std::string_view text, MessageDelta& out) {
  if (harmony_) return harmony_->push(text, out);
  if (!reasoning_) return push_content(text, out);
  std::string reasoning, content;
  reasoning_->push(text, reasoning, content);
  if (keep_reasoning_) return push_content(text, out);
  out.reasoning += reasoning;
  push_content(content, out);
}

void MessageParser::push_content(std::string_view content, MessageDelta& out) {
  if (content.empty()) return;
  if (tool_calls_) return tool_calls_->push(content, out);
  out.content += content;
}

void MessageParser::finish(MessageDelta& out) {
  if (harmony_) return harmony_->finish(out);
  if (reasoning_ && !keep_reasoning_) {
    std::string content;
    reasoning_->finish(out.reasoning, content);
    push_content(content, out);
  }
  if (tool_calls_) tool_calls_->finish(out);
}

size_t MessageParser::calls() const {
  if (harmony_) return harmony_->calls();
  return tool_calls_ ? tool_calls_->calls() : 0;
}

std::optional<bool> MessageParser::in_reasoning() const {
  if (harmony_) return harmony_->in_reasoning();
  return reasoning_ ? reasoning_->inside() : false;
}

MessageDelta parse_message(const MessageParserOptions& options, std::string_view text) {
  // Parsers buffer a piece, and their time grows with the buffer.
  constexpr size_t kPieceBytes = 4096;
  MessageParser parser(options);
  MessageDelta message;
  for (size_t begin = 0; begin < text.size(); begin += kPieceBytes) {
    MessageDelta delta;
    parser.push(text.substr(begin, kPieceBytes), delta);
    message.add(std::move(delta));
  }
  MessageDelta delta;
  parser.finish(delta);
  message.add(std::move(delta));
  return message;
}

}  // namespace banyan
