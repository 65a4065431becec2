// From a model's text, as it comes, to content and calls of tools, by the format's entry
// (llm/messages/tool_calls.h).
//
// Whatever the text is, it is taken apart without an error: what does not become a call stays
// content. Arguments go out as they come; text that may be the beginning of a mark is held back
// until it is certain. The work per piece does not grow with what came before.
//
// One per sequence; belongs to one thread; the format must outlive it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "llm/messages/message_delta.h"
#include "llm/messages/tool_calls.h"

namespace banyan {

// Follows one JSON value through text that comes in parts.
class JsonExtent {
 public:
  // How many bytes of `text` belong to the value; done() once it has ended.
  size_t take(std::string_view text);
  bool done() const { return done_; }

 private:
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, begun_ = false, done_ = false, scalar_ = false;
};

class ToolCallParser {
 public:
  // `tools` say which arguments are strings, where the format does not.
  ToolCallParser(const ToolCallFormat& format, std::vector<Tool> tools);

  void push(std::string_view text, MessageDelta& out);
  // The text is over.
  void finish(MessageDelta& out);
  size_t calls() const { return calls_; }  // that have begun

 private:
  enum class State : uint8_t { kContent, kName, kEnvelope, kArguments, kParameters, kTail };

  // Each takes from the front of buffer_; false: needs more text.
  bool step(MessageDelta& out);
  bool step_content(MessageDelta& out);
  bool step_name(MessageDelta& out);
  bool step_envelope(MessageDelta& out);
  bool step_arguments(MessageDelta& out);
  bool step_parameters(MessageDelta& out);
  bool step_parameter_value(MessageDelta& out);
  bool step_tail();

  void begin_call(std::string name, std::string id, MessageDelta& out);
  void give_up(MessageDelta& out);
  void add_content(std::string_view text, MessageDelta& out);
  void add_arguments(std::string text, MessageDelta& out);
  void consume(size_t bytes);
  void skip_space();
  std::string argument_json(std::string_view key, std::string_view value) const;
  size_t find_from(std::string_view mark);

  const ToolCallFormat& format_;
  const std::vector<Tool> tools_;
  std::vector<std::string_view> marks_;  // that end content
  State state_ = State::kContent;
  std::string buffer_;
  size_t searched_ = 0;   // in buffer_, for the mark that is being looked for
  std::string space_;     // content's end, held back: a call may follow
  std::string given_up_;  // what is content if the call comes to nothing
  bool at_start_ = true;  // nothing but space has come, or none since a call
  size_t calls_ = 0;
  std::string name_;  // of the present call
  JsonExtent extent_;
  std::string key_;  // of the present argument
  bool in_value_ = false;
  size_t parameters_ = 0;  // of the present call, so far; bytes of them where they are JSON
};

}  // namespace banyan
