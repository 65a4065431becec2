#include "llm/messages/literal_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/json_text.h"
#include "base/space.h"
#include "llm/messages/marks.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr size_t kWordBytesMax = 1024;
constexpr size_t kLevelsMax = 128;

template <class Number>
bool read_number(std::string_view word, Number& value) {
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

std::string json_of_word(std::string_view word) {
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  if (word == "None" || word == "null" || word.empty()) return "null";
  if (Json::accept(word)) return std::string(word);
  int64_t integer = 0;  // 007
  if (read_number(word, integer)) return std::to_string(integer);
  double number = 0;  // 5. and .5
  if (read_number(word, number) && std::isfinite(number)) return dump_json(number);
  return dump_json(Json(word));
}

// A byte of a string, as it is written in JSON.
void append_character(char c, std::string& json) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  if (c == '"' || c == '\\') {
    json += '\\';
    json += c;
  } else if (c == '\n') {
    json += "\\n";
  } else if (static_cast<uint8_t>(c) < 0x20) {
    json += "\\u00";
    json += kDigits[static_cast<uint8_t>(c) >> 4];
    json += kDigits[static_cast<uint8_t>(c) & 15u];
  } else {
    json += c;
  }
}

bool is_close(char c) {
  return c == ')' || c == ']' || c == '}';
}

// The code that the digits of \x, \u or \U name; nothing if they are not digits.
std::optional<char32_t> code_of(std::string_view digits) {
  uint32_t code = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  bool surrogate = digits.size() == 8 && code >= 0xd800 && code < 0xe000;
  bool valid = error == std::errc() && end == digits.data() + digits.size() && code <= 0x10ffff &&
               !surrogate;
  return valid ? std::optional<char32_t>(code) : std::nullopt;
}

// The character that a backslash and `c` stand for in Python, '\0' if none.
char escaped(char c) {
  constexpr std::string_view kNames = "nrtbfav\\'\"", kCharacters = "\n\r\t\b\f\a\v\\'\"";
  size_t at = kNames.find(c);
  return at == kNames.npos ? '\0' : kCharacters[at];
}

}  // namespace

size_t LiteralReader::take(std::string_view text, std::string& json) {
  size_t bytes = text.size();
  if (state_ == State::kBegin) {
    levels_.push_back({.key_end = syntax_.key_end});
    json += '{';
    state_ = State::kItem;
  }
  while (!text.empty() && !done() && step(text, json)) {
  }
  return bytes - text.size();
}

bool LiteralReader::step(std::string_view& text, std::string& json) {
  bool between = state_ != State::kString;
  if (between && kSpace.find(text[0]) != kSpace.npos) {
    text.remove_prefix(1);
    return true;
  }
  switch (state_) {
    case State::kItem:
      return step_item(text, json);
    case State::kValue:
      return step_value(text, json);
    case State::kString:
      return step_string(text, json);
    case State::kAfterKey:
      if (text[0] == levels_.back().key_end) {
        text.remove_prefix(1);
        json += ": ";
        state_ = State::kValue;
      } else {  // not a key after all
        json += ": null";
        state_ = State::kAfter;
      }
      return true;
    case State::kAfter:
      step_after(text, json);
      return true;
    case State::kBegin:
    case State::kDone:
      break;
  }
  return false;
}

// Before a key, or before an item of a list.
bool LiteralReader::step_item(std::string_view& text, std::string& json) {
  char c = text[0];
  if (c == ',') {
    text.remove_prefix(1);
    return true;
  }
  if (is_close(c)) {
    text.remove_prefix(1);
    close(json);
    return true;
  }
  if (levels_.back().key_end == '\0') {
    begin_item(json);
    state_ = State::kValue;
    return true;
  }
  std::optional<bool> string = begin_string(text);
  if (!string) return false;
  if (*string) {
    begin_item(json);
    json += '"';
    key_ = true;
    return true;
  }
  const char ends[] = {levels_.back().key_end, ',', ')', ']', '}'};
  size_t end = text.find_first_of(std::string_view(ends, sizeof ends));
  if (end == text.npos && text.size() <= kWordBytesMax) return false;
  end = std::min(end, kWordBytesMax);
  bool key = end < text.size() && text[end] == levels_.back().key_end;
  if (key) {
    begin_item(json);
    json += dump_json(Json(trim_space(text.substr(0, end)))) + ": ";
    state_ = State::kValue;
  }
  text.remove_prefix(end + (key ? 1 : 0));
  return true;
}

bool LiteralReader::step_value(std::string_view& text, std::string& json) {
  char c = text[0];
  std::optional<bool> string = begin_string(text);
  if (!string) return false;
  if (*string) {
    json += '"';
    key_ = false;
    return true;
  }
  if ((c == '[' || c == '(' || c == '{') && open(c, json)) {
    text.remove_prefix(1);
    return true;
  }
  size_t end = text.find_first_of(",)]}");
  if (end == text.npos && text.size() <= kWordBytesMax) return false;
  end = std::min(end, kWordBytesMax);
  json += json_of_word(trim_space(text.substr(0, end)));
  text.remove_prefix(end);
  state_ = State::kAfter;
  return true;
}

bool LiteralReader::step_string(std::string_view& text, std::string& json) {
  std::string_view quote = syntax_.quote.empty() ? std::string_view(&quote_, 1) : syntax_.quote;
  if (text.starts_with(quote)) {
    text.remove_prefix(quote.size());
    json += '"';
    state_ = key_ ? State::kAfterKey : State::kAfter;
    return true;
  }
  if (quote.starts_with(text)) return false;
  if (text[0] == '\\' && syntax_.quote.empty()) return step_escape(text, json);
  append_character(text[0], json);
  text.remove_prefix(1);
  return true;
}

// An escape of Python, which keeps the backslash of what is none.
bool LiteralReader::step_escape(std::string_view& text, std::string& json) {
  if (text.size() < 2) return false;
  char c = text[1];
  size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits > 0) {
    std::string_view number = text.substr(2, digits);
    bool valid = number.empty() || code_of(number);
    if (valid && number.size() < digits) return false;
    if (valid) {
      // \u as it is, since it may be half of a pair.
      bool half = c == 'u';
      std::string character;
      if (!half) unicode::append(character, *code_of(number));
      if (half) json += text.substr(0, 2 + digits);
      for (char byte : character) append_character(byte, json);
      text.remove_prefix(2 + digits);
      return true;
    }
  }
  char plain = escaped(c);
  append_character(plain == '\0' ? '\\' : plain, json);
  text.remove_prefix(plain == '\0' ? 1 : 2);
  return true;
}

void LiteralReader::step_after(std::string_view& text, std::string& json) {
  char c = text[0];
  text.remove_prefix(1);
  if (is_close(c)) return close(json);
  if (c == ',') state_ = State::kItem;  // anything else is skipped
}

std::optional<bool> LiteralReader::begin_string(std::string_view& text) {
  if (syntax_.quote.empty()) {
    if (text[0] != '"' && text[0] != '\'') return false;
    quote_ = text[0];
    text.remove_prefix(1);
  } else if (text.starts_with(syntax_.quote)) {
    text.remove_prefix(syntax_.quote.size());
  } else {
    if (syntax_.quote.starts_with(text)) return std::nullopt;
    return false;
  }
  state_ = State::kString;
  return true;
}

void LiteralReader::begin_item(std::string& json) {
  if (!std::exchange(levels_.back().empty, false)) json += ", ";
}

// False if there are too many levels.
bool LiteralReader::open(char bracket, std::string& json) {
  if (levels_.size() == kLevelsMax) return false;
  bool object = bracket == '{';
  levels_.push_back({.key_end = object ? ':' : '\0'});
  json += object ? '{' : '[';
  state_ = State::kItem;
  return true;
}

void LiteralReader::close(std::string& json) {
  json += levels_.back().key_end == '\0' ? ']' : '}';
  levels_.pop_back();
  state_ = levels_.empty() ? State::kDone : State::kAfter;
}

}  // namespace banyan
