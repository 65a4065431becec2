#include "llm/messages/tool_call_parser.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "llm/messages/marks.h"

namespace banyan {
namespace {

using Style = ToolCallFormat::Style;

constexpr size_t kCallHeaderBytesMax = 1024;  // of a call, before its arguments
constexpr size_t kEarlyArgumentsMax = 16 << 10;

bool is_space(char c) {
  return kSpace.find(c) != kSpace.npos;
}

// The first marker in a text of markers and whitespace: the first tag of "</arg_key>\n<arg_value>".
std::string_view first_word(std::string_view text) {
  text = trim_space(text);
  return text.substr(0, text.find_first_of(kSpace));
}

// {"name": NAME, "arguments": ...: what has been parsed so far.
struct Envelope {
  enum class State { kMore, kWrong, kArguments, kEnded } state = State::kMore;
  std::string name;
  size_t at = 0;          // kArguments: their offset; kEnded: after the closing brace
  std::string arguments;  // kEnded, or kArguments if they precede the name
};

class EnvelopeReader {
 public:
  explicit EnvelopeReader(std::string_view text) : text_(text) {}

  Envelope read() {
    if (!expect('{')) return stop();
    while (true) {
      if (expect('}')) {
        envelope_.state = has_name_ ? Envelope::State::kEnded : Envelope::State::kWrong;
        envelope_.at = at_;
        return std::move(envelope_);
      }
      std::optional<std::string_view> key = value();
      if (!key || !expect(':')) return stop();
      bool arguments = *key == "\"arguments\"" || *key == "\"parameters\"";
      skip();
      if (arguments && has_name_) {
        if (at_ >= text_.size()) return stop();
        envelope_.state = Envelope::State::kArguments;
        envelope_.at = at_;
        return std::move(envelope_);
      }
      std::optional<std::string_view> found = value();
      if (!found) return stop();
      if (arguments) envelope_.arguments = *found;
      if (*key == "\"name\"") {
        Json name = Json::parse(*found, nullptr, false);
        if (!name.is_string() || name == "") return wrong();
        envelope_.name = name;
        has_name_ = true;
      }
      expect(',');
    }
  }

 private:
  void skip() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool expect(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A complete JSON value.
  std::optional<std::string_view> value() {
    skip();
    JsonExtent extent;
    size_t size = extent.take(text_.substr(at_));
    if (!extent.done() || size == 0) return std::nullopt;
    std::string_view found = text_.substr(at_, size);
    at_ += size;
    return found;
  }
  // Distinguishes the end of the available text from a syntax error.
  Envelope stop() {
    skip();
    bool ended = at_ >= text_.size();
    JsonExtent extent;
    extent.take(text_.substr(std::min(at_, text_.size())));
    if (ended || !extent.done()) return std::move(envelope_);
    return wrong();
  }
  Envelope wrong() {
    envelope_.state = Envelope::State::kWrong;
    return std::move(envelope_);
  }

  std::string_view text_;
  size_t at_ = 0;
  bool has_name_ = false;
  Envelope envelope_;
};

}  // namespace

size_t JsonExtent::take(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
        if (depth_ == 0) done_ = true;
      }
    } else if (c == '"' && !scalar_) {
      in_string_ = begun_ = true;
    } else if ((c == '{' || c == '[') && !scalar_) {
      ++depth_;
      begun_ = true;
    } else if (depth_ > 0 && (c == '}' || c == ']')) {
      if (--depth_ == 0) done_ = true;
    } else if (depth_ == 0 && (begun_ || !is_space(c))) {
      // A number or literal extends to the first character that cannot be part of it.
      if (is_space(c) || c == ',' || c == '}' || c == ']' || c == '<' || c == ':' || c == '"') {
        done_ = true;
        return i;
      }
      begun_ = scalar_ = true;
    }
    if (done_) return i + 1;
  }
  return text.size();
}

ToolCallParser::ToolCallParser(const ToolCallFormat& format, std::vector<Tool> tools)
    : format_(format), tools_(std::move(tools)) {
  for (std::string_view mark : {format.begin, format.section_begin, format.section_end}) {
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
    case State::kName:
      return step_name(out);
    case State::kEnvelope:
      return step_envelope(out);
    case State::kArguments:
      return step_arguments(out);
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
    if (buffer_[first] == '{') {
      given_up_ = buffer_.substr(0, first);
      consume(first);
      state_ = State::kEnvelope;
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
  if (found != format_.begin) return !buffer_.empty();
  given_up_ = std::exchange(space_, {}) + std::string(found);
  at_start_ = false;
  state_ = format_.style == Style::kEnvelope ? State::kEnvelope : State::kName;
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
  size_t bytes = std::min<size_t>(buffer_.size(), 1);
  text += buffer_.substr(0, bytes);
  consume(bytes);
  add_content(text, out);
}

void ToolCallParser::begin_call(std::string name, std::string id, MessageDelta& out) {
  name_ = name;
  parameters_ = 0;
  extent_ = {};
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
  state_ = format_.style == Style::kTagged ? State::kParameters : State::kArguments;
  return true;
}

bool ToolCallParser::step_envelope(MessageDelta& out) {
  Envelope envelope = EnvelopeReader(buffer_).read();
  using Found = Envelope::State;
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
    state_ = State::kTail;
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
  return true;
}

// After the arguments: skips to the call's end, or to the next call if the model forgot the end.
bool ToolCallParser::step_tail() {
  if (format_.end.empty()) {
    skip_space();
    if (buffer_.empty()) return false;
    if (format_.style == Style::kEnvelope && buffer_[0] == '}') consume(1);
    state_ = State::kContent;
    at_start_ = true;
    return true;
  }
  size_t end = buffer_.find(format_.end), next = buffer_.find(format_.begin);
  if (end == buffer_.npos && next == buffer_.npos) {
    std::string_view marks[] = {format_.end, format_.begin};
    consume(buffer_.size() - partial_mark(buffer_, marks));
    return false;
  }
  consume(end < next ? end + format_.end.size() : next);
  state_ = State::kContent;
  return true;
}

bool ToolCallParser::step_parameters(MessageDelta& out) {
  skip_space();
  if (buffer_.empty()) return false;
  std::string_view begin = format_.parameter.begin, after = first_word(format_.parameter.after_key);
  std::string_view marks[] = {begin, format_.end, format_.begin};
  if (buffer_.starts_with(begin)) {
    size_t end = buffer_.find(after, begin.size());
    if (end == buffer_.npos && buffer_.size() <= kCallHeaderBytesMax) return false;
    if (end > kCallHeaderBytesMax) {  // not a key
      consume(begin.size());
      return true;
    }
    key_ = trim_space(std::string_view(buffer_).substr(begin.size(), end - begin.size()));
    consume(end + after.size());
    in_value_ = true;
    return true;
  }
  if (buffer_.starts_with(format_.end) || buffer_.starts_with(format_.begin)) {
    add_arguments(parameters_ == 0 ? "{}" : "}", out);
    state_ = State::kTail;
    return true;
  }
  if (partial_mark(buffer_, marks) == buffer_.size()) return false;
  // Neither marker: a tag that closes the list, or unexpected text.
  consume(std::min(buffer_.find('<', 1), buffer_.size()));
  return true;
}

bool ToolCallParser::step_parameter_value(MessageDelta& out) {
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
  std::string json = dump_json(Json(key_)) + ": " + argument_json(key_, value);
  consume(end + last.size());
  in_value_ = false;
  add_arguments((parameters_++ == 0 ? "{" : ", ") + json, out);
  return true;
}

std::string ToolCallParser::argument_json(std::string_view key, std::string_view value) const {
  bool string = false;
  for (const Tool& tool : tools_) {
    if (tool.name != name_ || !tool.parameters.is_object()) continue;
    auto properties = tool.parameters.find("properties");
    if (properties == tool.parameters.end() || !properties->is_object()) continue;
    auto schema = properties->find(key);
    if (schema == properties->end() || !schema->is_object()) continue;
    string = schema->value("type", Json()) == "string";
    auto values = schema->find("enum");
    if (values != schema->end() && values->is_array()) {
      string |= std::ranges::find(*values, Json(value)) != values->end();
    }
  }
  if (!string) {
    Result<Json> parsed = parse_json(trim_space(value), "argument");
    if (parsed) return dump_json(*parsed);
  }
  return dump_json(Json(value));
}

void ToolCallParser::finish(MessageDelta& out) {
  if (state_ == State::kName || state_ == State::kEnvelope) {
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
