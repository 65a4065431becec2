#include "grammar/schema/layout.h"

#include <algorithm>

namespace banyan {
namespace {

bool opens(uint8_t byte) {
  return byte == '{' || byte == '[';
}

bool closes(uint8_t byte) {
  return byte == '}' || byte == ']';
}

}  // namespace

void JsonLayout::take(std::string_view bytes) {
  for (char c : bytes) {
    auto byte = static_cast<uint8_t>(c);
    if (in_string_) {
      in_string_ = escaped_ || byte != '"';
      escaped_ = !escaped_ && byte == '\\';
      continue;
    }
    if (byte == ' ' || byte == '\t') {
      if (spaces_ < UINT16_MAX) ++spaces_;
    } else if (byte == '\n') {
      broken_ = true;
      spaces_ = 0;
    } else {
      end_whitespace(byte);
      last_ = byte;
      in_string_ = byte == '"';
    }
  }
}

// Updates the layout habits from the whitespace between last_ and `next`.
void JsonLayout::end_whitespace(uint8_t next) {
  Space space = broken_ ? Space::kLine : spaces_ > 0 ? Space::kOne : Space::kNone;
  bool empty = opens(last_) && closes(next);
  if (last_ == ':') habits_[kColon] = space;
  if (last_ == ',') habits_[kComma] = space;
  if (opens(last_) && !empty) {
    habits_[kOpening] = space;
    // Newlines here occur at commas and before the closing bracket.
    if (space == Space::kLine) habits_[kComma] = habits_[kClosing] = space;
    if (space == Space::kLine && spaces_ > indent_) {
      step_ = static_cast<uint16_t>(spaces_ - indent_);
    }
  }
  if (closes(next) && !empty) habits_[kClosing] = space;
  if (broken_) indent_ = spaces_;
  broken_ = false;
  spaces_ = 0;
}

// The next byte of this kind of whitespace; 0 once it is complete.
int JsonLayout::whitespace(Space space, int indent) const {
  if (space == Space::kLine && !broken_) return '\n';
  int wanted = space == Space::kLine ? indent : space == Space::kOne ? 1 : 0;
  return spaces_ < wanted ? ' ' : 0;
}

// The whitespace between last_ and `next`; -1 means that several bytes may follow.
int JsonLayout::space_before(int next) const {
  if (last_ == ':') return whitespace(habits_[kColon], indent_ + step_);
  if (last_ == ',') return whitespace(habits_[kComma], indent_);
  bool closing = next >= 0 && closes(static_cast<uint8_t>(next));
  if (opens(last_)) return closing ? 0 : whitespace(habits_[kOpening], indent_ + step_);
  return closing ? whitespace(habits_[kClosing], std::max(0, indent_ - step_)) : 0;
}

int JsonLayout::likely(const std::bitset<256>& choices) const {
  if (!between_tokens()) return -1;
  std::bitset<256> others = choices;
  for (uint8_t byte : {' ', '\n', '\t', '\r'}) others.reset(byte);
  bool may_space = others != choices;
  // Objects and arrays that may be empty rarely are.
  if (opens(last_) && others.count() == 2) {
    others.reset('}');
    others.reset(']');
  }
  int only = -1;
  if (others.count() == 1) {
    for (int byte = 0; byte < 256 && only < 0; ++byte) only = others[byte] ? byte : -1;
  }
  int space = may_space ? space_before(only) : 0;
  if (space == 0) return only;
  return choices[space] ? space : -1;
}

}  // namespace banyan
