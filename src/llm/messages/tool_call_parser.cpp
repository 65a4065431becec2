#include "llm/messages/tool_call_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/signed.h"
#include "llm/messages/marks.h"

namespace banyan {
namespace {

using Style = ToolCallFormat::Style;

constexpr size_t kCallHeaderBytesMax = 1024;  // of a call, before its arguments
constexpr size_t kEarlyArgumentsMax = 16 << 10;
const Json kAnything;  // a schema

// The first marker in a text of markers and whitespace: the first tag of "</arg_key>\n<arg_value>".
std::string_view first_word(std::string_view text) {
  text = trim_space(text);
  return text.substr(0, text.find_first_of(kSpace));
}

}  // namespace

ToolCallParser::ToolCallParser(const ToolCallFormat& format, std::vector<Tool> tools)
    : format_(format), tools_(std::move(tools)), literals_(format.literals) {
  for (std::string_view mark :
       {format.begin, format.section_begin, format.section_end, format.other_section_begin}) {
    if (!mark.empty()) marks_.push_back(mark);
  }
}

void ToolCallParser::push(std::string_view text, MessageDelta& out) {
  buffer_ += text;
  while (step(out)) {
  }
}

bool ToolCallParser::step(MessageDelta& out) {
  switch (state_) {
    case State::kContent:
      return step_content(out);
    case State::kList:
      return step_list(out);
    case State::kName:
      return step_name(out);
    case State::kEnvelope:
      return step_envelope(out);
    case State::kArguments:
      return step_arguments(out);
    case State::kEnvelopeRest:
      return step_envelope_rest();
    case State::kLiterals:
      return step_literals(out);
    case State::kParameters:
      return in_value_ ? step_parameter_value(out) : step_parameters(out);
    case State::kTail:
      return step_tail();
  }
  return false;
}

void ToolCallParser::consume(size_t bytes) {
  buffer_.erase(0, bytes);
  searched_ = 0;
}

void ToolCallParser::skip_space() {
  consume(std::min(buffer_.find_first_not_of(kSpace), buffer_.size()));
}

// The offset of `mark` in buffer_, or npos if not yet there; scanned text is not scanned again.
size_t ToolCallParser::find_from(std::string_view mark) {
  size_t found = buffer_.find(mark, searched_);
  if (found == buffer_.npos) {
    searched_ = buffer_.size() - std::min(buffer_.size(), mark.size() - 1);
  }
  return found;
}

bool ToolCallParser::step_content(MessageDelta& out) {
  if (format_.bare && at_start_) {
    size_t first = buffer_.find_first_not_of(calls_ > 0 ? " \t\r\n;" : kSpace);
    if (first == buffer_.npos) return false;
    Sight call = bare_call(std::string_view(buffer_).substr(first));
    if (call == Sight::kMore) return false;
    if (call == Sight::kYes) {
      begin_list(buffer_.substr(0, first), false);
      consume(first);
      if (!format_.is_list()) state_ = State::kEnvelope;
      return true;
    }
  }
  auto [first, found] = find_mark(buffer_, marks_);
  if (found.empty()) {
    size_t certain = buffer_.size() - partial_mark(buffer_, marks_);
    add_content(std::string_view(buffer_).substr(0, certain), out);
    consume(certain);
    return false;
  }
  add_content(std::string_view(buffer_).substr(0, first), out);
  consume(first + found.size());
  if (format_.is_list() && found != format_.section_end) {
    at_start_ = false;
    begin_list(std::exchange(space_, {}) + std::string(found), true);
    return true;
  }
  if (found != format_.begin) return !buffer_.empty();
  given_up_ = std::exchange(space_, {}) + std::string(found);
  at_start_ = false;
  state_ = format_.style == Style::kEnvelope ? State::kEnvelope : State::kName;
  return true;
}

// Whether `text`, the start of an answer, begins a call without a marker. A list must call a
// declared tool, since answers begin with brackets for other reasons too.
ToolCallParser::Sight ToolCallParser::bare_call(std::string_view text) const {
  if (!format_.is_list()) return text[0] == '{' ? Sight::kYes : Sight::kNo;
  if (!text.starts_with(format_.list.open)) return Sight::kNo;
  text.remove_prefix(format_.list.open.size());
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  Sight call = literal_call(text);
  if (call != Sight::kYes) return call;
  std::string_view name = text.substr(0, text.find(format_.after_name));
  bool declared = std::ranges::any_of(tools_, [&](const Tool& tool) { return tool.name == name; });
  return declared ? Sight::kYes : Sight::kNo;
}

// Whether `text` is NAME( and more.
ToolCallParser::Sight ToolCallParser::literal_call(std::string_view text) const {
  auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  size_t end = as_size(std::ranges::find_if_not(text, in_name) - text.begin());
  if (end > kCallHeaderBytesMax) return Sight::kNo;
  if (end == text.size()) return Sight::kMore;
  bool named = end > 0 && text.substr(end).starts_with(format_.after_name);
  return named ? Sight::kYes : Sight::kNo;
}

void ToolCallParser::begin_list(std::string given_up, bool marked) {
  given_up_ = std::move(given_up);
  marked_ = marked;
  opened_ = listed_ = false;
  state_ = State::kList;
}

// Consumes text that becomes content if no call follows.
void ToolCallParser::pass(size_t bytes) {
  if (!listed_) given_up_ += buffer_.substr(0, bytes);
  consume(bytes);
}

bool ToolCallParser::step_list(MessageDelta& out) {
  pass(std::min(buffer_.find_first_not_of(listed_ ? " \t\r\n," : kSpace), buffer_.size()));
  if (buffer_.empty()) return false;
  if (!listed_ && !opened_ && buffer_[0] == '[') {
    opened_ = true;
    pass(1);
    return true;
  }
  if (buffer_[0] == '{') {
    state_ = State::kEnvelope;
    return true;
  }
  Sight call = format_.style == Style::kLiteral ? literal_call(buffer_) : Sight::kNo;
  if (call == Sight::kMore) return false;
  if (call == Sight::kYes) {
    state_ = State::kName;
  } else if (listed_) {
    if (buffer_[0] == ']') consume(1);
    state_ = State::kTail;
  } else {
    give_up(out);
  }
  return true;
}

// Whitespace before a call is not content.
void ToolCallParser::add_content(std::string_view text, MessageDelta& out) {
  if (text.empty()) return;
  size_t end = text.find_last_not_of(kSpace);
  if (end == text.npos) {
    space_ += text;
    return;
  }
  at_start_ = false;
  out.content += std::exchange(space_, {});
  out.content += text.substr(0, end + 1);
  space_ = text.substr(end + 1);
}

// The text was not a call after all.
void ToolCallParser::give_up(MessageDelta& out) {
  state_ = State::kContent;
  at_start_ = false;
  std::string text = std::exchange(given_up_, {});
  // Emit at least one byte, otherwise parsing would retry the same text.
  size_t bytes = text.empty() ? std::min<size_t>(buffer_.size(), 1) : 0;
  text += buffer_.substr(0, bytes);
  consume(bytes);
  add_content(text, out);
}

void ToolCallParser::begin_call(std::string name, std::string id, MessageDelta& out) {
  name_ = name;
  parameters_ = 0;
  extent_ = {};
  listed_ = true;
  given_up_.clear();
  out.calls.push_back({.index = calls_++, .id = std::move(id), .name = std::move(name)});
}

void ToolCallParser::add_arguments(std::string text, MessageDelta& out) {
  if (text.empty()) return;
  bool joins = !out.calls.empty() && out.calls.back().index == calls_ - 1;
  if (!joins) out.calls.push_back({.index = calls_ - 1});
  out.calls.back().arguments += text;
}

bool ToolCallParser::step_name(MessageDelta& out) {
  size_t begin = buffer_.find_first_not_of(kSpace);
  if (begin == buffer_.npos) return false;
  std::string_view after = first_word(format_.after_name);
  size_t end = buffer_.npos;
  if (after.empty()) {  // a line break, or the next marker
    end = buffer_.find_first_of(" \t\r\n<", begin);
  } else {
    end = buffer_.find(after, begin);
  }
  bool too_long = std::min(end, buffer_.size()) > kCallHeaderBytesMax;
  if (end == buffer_.npos && !too_long) return false;
  std::string_view head = trim_space(std::string_view(buffer_).substr(0, end));
  std::string id(format_.numbered ? head : "");
  std::string_view before = trim_space(format_.before_name);
  if (head.starts_with(before)) head.remove_prefix(before.size());
  if (format_.numbered) head = head.substr(0, head.rfind(':'));
  head = trim_space(head);
  if (too_long || head.empty() || head.find_first_of("\n<") != head.npos) {
    give_up(out);
    return true;
  }
  std::string name(head);
  consume(end + after.size());
  begin_call(std::move(name), std::move(id), out);
  state_ = State::kArguments;
  if (format_.style == Style::kTagged) state_ = State::kParameters;
  if (format_.style == Style::kLiteral) {
    literals_ = LiteralReader(format_.literals);
    state_ = State::kLiterals;
  }
  return true;
}

bool ToolCallParser::step_envelope(MessageDelta& out) {
  CallEnvelope envelope = read_call_envelope(buffer_);
  using Found = CallEnvelope::State;
  // Only arguments that precede the name may be long.
  bool early = buffer_.find("\"arguments\"") < 64 || buffer_.find("\"parameters\"") < 64;
  size_t bytes_max = early ? kEarlyArgumentsMax : kCallHeaderBytesMax;
  bool more = envelope.state == Found::kMore;
  if (more && buffer_.size() <= bytes_max) return false;
  if (more || envelope.state == Found::kWrong || envelope.at > bytes_max) {
    give_up(out);
    return true;
  }
  begin_call(std::move(envelope.name), {}, out);
  consume(envelope.at);
  state_ = State::kArguments;
  if (envelope.state == Found::kEnded) {
    add_arguments(envelope.arguments.empty() ? "{}" : std::move(envelope.arguments), out);
    state_ = format_.is_list() ? State::kList : State::kTail;
  }
  return true;
}

bool ToolCallParser::step_arguments(MessageDelta& out) {
  if (parameters_ == 0) skip_space();
  if (buffer_.empty()) return false;
  size_t size = extent_.take(buffer_);
  parameters_ += size;
  add_arguments(buffer_.substr(0, size), out);
  consume(size);
  if (!extent_.done()) return false;
  if (parameters_ == 0) add_arguments("{}", out);
  state_ = State::kTail;
  if (format_.is_list()) {
    extent_ = {};
    extent_.take("{");
    state_ = State::kEnvelopeRest;
  }
  return true;
}

bool ToolCallParser::step_envelope_rest() {
  consume(extent_.take(buffer_));
  if (!extent_.done()) return false;
  state_ = State::kList;
  return true;
}

bool ToolCallParser::step_literals(MessageDelta& out) {
  std::string json;
  consume(literals_.take(buffer_, json));
  add_arguments(std::move(json), out);
  if (!literals_.done()) return false;
  state_ = format_.is_list() ? State::kList : State::kTail;
  return true;
}

// After the arguments, or a list: skips to its end, or to the next one if the model forgot the end.
bool ToolCallParser::step_tail() {
  bool list = format_.is_list();
  std::string_view last = list ? format_.section_end : format_.end;
  std::string_view first = list ? format_.section_begin : format_.begin;
  if (list && (last.empty() || !marked_)) {
    state_ = State::kContent;
    return true;
  }
  if (last.empty()) {
    skip_space();
    if (buffer_.empty()) return false;
    if (format_.style == Style::kEnvelope && buffer_[0] == '}') consume(1);
    state_ = State::kContent;
    at_start_ = true;
    return true;
  }
  size_t end = buffer_.find(last), next = buffer_.find(first);
  if (end == buffer_.npos && next == buffer_.npos) {
    std::string_view marks[] = {last, first};
    consume(buffer_.size() - partial_mark(buffer_, marks));
    return false;
  }
  consume(end < next ? end + last.size() : next);
  state_ = State::kContent;
  return true;
}

bool ToolCallParser::step_parameters(MessageDelta& out) {
  skip_space();
  if (buffer_.empty()) return false;
  std::string_view begin = format_.parameter.begin, after = first_word(format_.parameter.after_key);
  std::string_view ends[] = {format_.end, format_.begin};
  if (partial_mark(buffer_, ends) == buffer_.size()) return false;
  if (buffer_.starts_with(format_.end) || buffer_.starts_with(format_.begin)) {
    add_arguments(parameters_ == 0 ? "{}" : "}", out);
    state_ = State::kTail;
    return true;
  }
  if (buffer_.starts_with(begin)) {
    size_t end = buffer_.find(after, begin.size());
    if (end == buffer_.npos && buffer_.size() <= kCallHeaderBytesMax) return false;
    if (end > kCallHeaderBytesMax) {  // not a key
      consume(begin.size());
      return true;
    }
    key_ = trim_space(std::string_view(buffer_).substr(begin.size(), end - begin.size()));
    in_value_ = !format_.parameter.nested || !buffer_.starts_with(format_.parameter.end);
    element_ = {};
    consume(end + after.size());
    return true;
  }
  // Neither marker: a tag that closes the list, or unexpected text.
  std::string_view marks[] = {begin, format_.end, format_.begin};
  size_t first =
      std::min(find_mark(buffer_, marks).at, buffer_.size() - partial_mark(buffer_, marks));
  consume(first);
  return first > 0;
}

bool ToolCallParser::step_parameter_value(MessageDelta& out) {
  if (format_.parameter.nested) return step_elements(out);
  std::string_view last = first_word(format_.parameter.end);
  size_t end = find_from(last);
  if (end == buffer_.npos) return false;
  std::string_view value = std::string_view(buffer_).substr(0, end);
  // The text between the key's tag and the value, and between the value and its end.
  std::string_view opening = format_.parameter.after_key;
  opening.remove_prefix(opening.find(first_word(opening)) + first_word(opening).size());
  std::string_view inner = trim_space(opening);
  if (!inner.empty()) {
    size_t at = value.find(inner);
    if (at != value.npos) value.remove_prefix(at + inner.size());
  } else if (!opening.empty() && value.starts_with(opening)) {
    value.remove_prefix(opening.size());
  }
  bool own_line = format_.parameter.end.starts_with('\n');
  if (own_line && value.ends_with('\n')) value.remove_suffix(1);
  std::optional<bool> string = take_kind(value);
  ArgumentSchema schema = string ? ArgumentSchema(kAnything) : schema_of_value();
  Json json = string && *string ? Json(value) : value_of_text(value, schema);
  consume(end + last.size());
  add_parameter(json, out);
  return true;
}

bool ToolCallParser::step_elements(MessageDelta& out) {
  std::optional<ElementEnd> end = element_.find(format_, buffer_);
  if (!end) return false;
  std::string_view value = std::string_view(buffer_).substr(0, end->value);
  Json json = element_value(format_, value, schema_of_value());
  consume(end->next);
  add_parameter(json, out);
  return true;
}

void ToolCallParser::add_parameter(const Json& value, MessageDelta& out) {
  in_value_ = false;
  std::string text = dump_json(Json(key_)) + ": " + dump_json(value);
  add_arguments((parameters_++ == 0 ? "{" : ", ") + text, out);
}

// Takes the mark that says whether a value is a string from its front; nothing if there is none.
std::optional<bool> ToolCallParser::take_kind(std::string_view& value) const {
  const ToolCallFormat::Parameter& parameter = format_.parameter;
  if (parameter.if_string.empty()) return {};
  for (bool string : {true, false}) {
    std::string_view mark = string ? parameter.if_string : parameter.if_other;
    if (!value.starts_with(mark)) continue;
    value.remove_prefix(mark.size());
    return string;
  }
  if (value.starts_with('>')) value.remove_prefix(1);
  return {};
}

// Of the current argument.
ArgumentSchema ToolCallParser::schema_of_value() const {
  auto tool = std::ranges::find(tools_, name_, &Tool::name);
  return ArgumentSchema(tool == tools_.end() ? kAnything : tool->parameters).member(key_);
}

void ToolCallParser::finish(MessageDelta& out) {
  bool undecided = state_ == State::kList && !listed_;
  if (undecided || state_ == State::kName || state_ == State::kEnvelope) {
    out.content += std::exchange(given_up_, {}) + std::exchange(buffer_, {});
  }
  if (state_ == State::kContent) {
    space_ += std::exchange(buffer_, {});
    bool blank = trim_space(space_).empty();
    if (!blank || calls_ == 0) out.content += space_;
    space_.clear();
  }
  buffer_.clear();
}

}  // namespace banyan
