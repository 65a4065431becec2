#include "llm/messages/tool_call_json.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/space.h"

namespace banyan {
namespace {

bool is_space(char c) {
  return kSpace.find(c) != kSpace.npos;
}

class EnvelopeReader {
 public:
  explicit EnvelopeReader(std::string_view text) : text_(text) {}

  CallEnvelope read() {
    if (!expect('{')) return stop();
    while (true) {
      if (expect('}')) {
        envelope_.state = has_name_ ? CallEnvelope::State::kEnded : CallEnvelope::State::kWrong;
        envelope_.at = at_;
        return std::move(envelope_);
      }
      std::optional<std::string_view> key = value();
      if (!key || !expect(':')) return stop();
      bool arguments = *key == "\"arguments\"" || *key == "\"parameters\"";
      skip();
      if (arguments && has_name_) {
        if (at_ >= text_.size()) return stop();
        envelope_.state = CallEnvelope::State::kArguments;
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
  CallEnvelope stop() {
    skip();
    bool ended = at_ >= text_.size();
    JsonExtent extent;
    extent.take(text_.substr(std::min(at_, text_.size())));
    if (ended || !extent.done()) return std::move(envelope_);
    return wrong();
  }
  CallEnvelope wrong() {
    envelope_.state = CallEnvelope::State::kWrong;
    return std::move(envelope_);
  }

  std::string_view text_;
  size_t at_ = 0;
  bool has_name_ = false;
  CallEnvelope envelope_;
};

}  // namespace

CallEnvelope read_call_envelope(std::string_view text) {
  return EnvelopeReader(text).read();
}

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

}  // namespace banyan
