#include "server/openai/custom_input.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/space.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

constexpr char32_t kReplacementCode = 0xfffd;
constexpr size_t kUnicodeEscapeBytes = 6;  // \u and four digits

// Decodes an escape such as \u00e9 at the start of `text` to its code unit.
std::optional<uint32_t> code_unit(std::string_view text) {
  if (text.size() < kUnicodeEscapeBytes || !text.starts_with("\\u")) return std::nullopt;
  const char* end = text.data() + kUnicodeEscapeBytes;
  uint32_t unit = 0;
  auto [read, error] = std::from_chars(text.data() + 2, end, unit, 16);
  if (error != std::errc() || read != end) return std::nullopt;
  return unit;
}

bool is_high(uint32_t unit) {
  return unit >= 0xd800 && unit < 0xdc00;
}

bool is_low(uint32_t unit) {
  return unit >= 0xdc00 && unit < 0xe000;
}

// The character that a backslash and `c` encode; 0: none.
char escaped(char c) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  size_t at = kNames.find(c);
  return at == kNames.npos ? '\0' : kValues[at];
}

}  // namespace

std::string CustomInput::take(std::string_view arguments) {
  std::string out;
  if (state_ == State::kEnded) return out;
  pending_ += arguments;
  if (state_ == State::kBegin) begin();
  if (state_ == State::kString) read_string(out);
  return out;
}

std::string CustomInput::finish() {
  std::string rest = std::exchange(pending_, {});
  if (std::exchange(state_, State::kEnded) != State::kOther) return {};
  Json object = Json::parse(rest, nullptr, false);
  if (!object.is_object() || !object.contains("input") || !object["input"].is_string()) return rest;
  return object["input"].get<std::string>();
}

// Skips to the first character of the string, once it has arrived.
void CustomInput::begin() {
  constexpr std::array<std::string_view, 4> kParts = {"{", "\"input\"", ":", "\""};
  size_t at = 0;
  for (std::string_view part : kParts) {
    at = std::min(pending_.find_first_not_of(kSpace, at), pending_.size());
    std::string_view rest = std::string_view(pending_).substr(at, part.size());
    if (rest != part) {
      if (!part.starts_with(rest)) state_ = State::kOther;
      return;
    }
    at += part.size();
  }
  state_ = State::kString;
  pending_.erase(0, at);
}

void CustomInput::read_string(std::string& out) {
  size_t at = 0;
  while (at < pending_.size()) {
    size_t stop = std::min(pending_.find_first_of("\"\\", at), pending_.size());
    out.append(pending_, at, stop - at);
    at = stop;
    if (at == pending_.size()) break;
    if (pending_[at] == '"') {
      state_ = State::kEnded;
      pending_.clear();
      return;
    }
    if (!read_escape(at, out)) break;
  }
  pending_.erase(0, at);
}

// Returns false if the escape is incomplete. A backslash that starts no valid escape is kept
// literally.
bool CustomInput::read_escape(size_t& at, std::string& out) {
  std::string_view text = std::string_view(pending_).substr(at);
  if (text.size() < 2) return false;
  if (text[1] != 'u') {
    char c = escaped(text[1]);
    out += c == '\0' ? '\\' : c;
    at += c == '\0' ? 1 : 2;
    return true;
  }
  if (text.size() < kUnicodeEscapeBytes && text.find('"') == text.npos) return false;
  std::optional<uint32_t> unit = code_unit(text);
  if (!unit) {
    out += '\\';
    ++at;
    return true;
  }
  std::string_view rest = text.substr(kUnicodeEscapeBytes);
  if (is_high(*unit) && rest.size() < kUnicodeEscapeBytes && rest.find('"') == rest.npos &&
      std::string_view("\\u").starts_with(rest.substr(0, 2))) {
    return false;
  }
  std::optional<uint32_t> low = is_high(*unit) ? code_unit(rest) : std::nullopt;
  at += kUnicodeEscapeBytes;
  if (low && is_low(*low)) {
    unicode::append(out, static_cast<char32_t>(0x10000 + ((*unit - 0xd800) << 10) + *low - 0xdc00));
    at += kUnicodeEscapeBytes;
  } else {
    bool half = is_high(*unit) || is_low(*unit);
    unicode::append(out, half ? kReplacementCode : static_cast<char32_t>(*unit));
  }
  return true;
}

std::string custom_input(std::string_view arguments) {
  CustomInput input;
  std::string text = input.take(arguments);
  return text + input.finish();
}

std::string custom_arguments(const std::string& input) {
  return dump_json({{"input", input}});
}

}  // namespace banyan
