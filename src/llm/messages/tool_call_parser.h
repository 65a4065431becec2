// Parses streamed text into content and tool calls, driven by the format's entry
// (llm/messages/tool_calls.h).
//
// Any text parses without error: whatever is not a call remains content. Arguments are emitted as
// they arrive; text that may start a marker is held back until decided. The work per piece does not
// depend on the length of earlier text.
//
// One per sequence; belongs to one thread; the format must outlive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/messages/argument_schema.h"
#include "llm/messages/element_reader.h"
#include "llm/messages/literal_reader.h"
#include "llm/messages/message_delta.h"
#include "llm/messages/tool_call_json.h"
#include "llm/messages/tool_calls.h"

namespace banyan {

class ToolCallParser {
 public:
  // `tools` says which arguments are strings, for formats that do not mark them.
  ToolCallParser(const ToolCallFormat& format, std::vector<Tool> tools);

  void push(std::string_view text, MessageDelta& out);
  // Ends the text.
  void finish(MessageDelta& out);
  size_t calls() const { return calls_; }  // started

 private:
  enum class State : uint8_t {
    kContent,
    kList,  // before a call in a list, or the list's end
    kName,
    kEnvelope,
    kArguments,
    kEnvelopeRest,  // in a list: of the object, after the arguments
    kParameters,
    kLiterals,
    kTail,
  };
  enum class Sight : uint8_t { kNo, kMore, kYes };  // kMore: more text is needed to tell

  // Each consumes from the front of buffer_; false: more text is needed.
  bool step(MessageDelta& out);
  bool step_content(MessageDelta& out);
  bool step_list(MessageDelta& out);
  bool step_name(MessageDelta& out);
  bool step_envelope(MessageDelta& out);
  bool step_arguments(MessageDelta& out);
  bool step_parameters(MessageDelta& out);
  bool step_parameter_value(MessageDelta& out);
  bool step_literals(MessageDelta& out);
  bool step_envelope_rest();
  bool step_tail();

  Sight bare_call(std::string_view text) const;
  Sight literal_call(std::string_view text) const;
  void begin_list(std::string given_up, bool marked);
  void pass(size_t bytes);
  void begin_call(std::string name, std::string id, MessageDelta& out);
  void give_up(MessageDelta& out);
  void add_content(std::string_view text, MessageDelta& out);
  void add_arguments(std::string text, MessageDelta& out);
  void consume(size_t bytes);
  void skip_space();
  bool step_elements(MessageDelta& out);
  void add_parameter(const Json& value, MessageDelta& out);
  std::optional<bool> take_kind(std::string_view& value) const;
  ArgumentSchema schema_of_value() const;
  size_t find_from(std::string_view mark);

  const ToolCallFormat& format_;
  const std::vector<Tool> tools_;
  std::vector<std::string_view> marks_;  // markers that end content
  State state_ = State::kContent;
  std::string buffer_;
  size_t searched_ = 0;   // offset in buffer_ where the search for the current marker resumes
  std::string space_;     // trailing whitespace of the content, held back in case a call follows
  std::string given_up_;  // becomes content if the call turns out not to be one
  bool at_start_ = true;  // only whitespace so far, or since the last call
  size_t calls_ = 0;
  std::string name_;     // of the current call
  bool marked_ = false;  // the list began with a marker
  bool opened_ = false;  // its bracket has been read
  bool listed_ = false;  // one of its calls has begun
  JsonExtent extent_;
  LiteralReader literals_;
  std::string key_;  // of the current argument
  bool in_value_ = false;
  ElementExtent element_;  // of its value
  size_t parameters_ = 0;  // of the current call so far; in bytes where they are JSON
};

}  // namespace banyan
