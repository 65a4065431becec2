// Reads a call's arguments that are written as literals, KEY=VALUE or KEY:VALUE, and writes them as
// a JSON object while they arrive.
//
// Python's literals: strings in quotes or double quotes with escapes, True, False, None, numbers,
// lists, tuples and dictionaries. With a quotation mark of their own (Gemma 4's <|"|>), strings
// have no escapes and keys of objects no quotes. What is neither becomes a string; positional
// arguments are dropped. Any text yields valid JSON once done().
//
// One per call; belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace banyan {

struct LiteralSyntax {
  char key_end = '\0';          // between the key of an argument and its value
  std::string_view quote = {};  // around strings; empty: as in Python
};

class LiteralReader {
 public:
  // Begins after the bracket that opens the arguments and ends after the one that closes them.
  explicit LiteralReader(const LiteralSyntax& syntax) : syntax_(syntax) {}

  // Reads from the front of `text`, appends to `json`, and returns how many bytes it has read. The
  // rest must be passed again, with more after it.
  size_t take(std::string_view text, std::string& json);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t { kBegin, kItem, kValue, kString, kAfterKey, kAfter, kDone };
  struct Level {
    char key_end = '\0';  // '\0': a list
    bool empty = true;
  };

  // Each reads from the front of `text`; false: more text is needed.
  bool step(std::string_view& text, std::string& json);
  bool step_item(std::string_view& text, std::string& json);
  bool step_value(std::string_view& text, std::string& json);
  bool step_string(std::string_view& text, std::string& json);
  bool step_escape(std::string_view& text, std::string& json);
  void step_after(std::string_view& text, std::string& json);

  // Whether a string begins; if so, its mark is read. Nothing while undecided.
  std::optional<bool> begin_string(std::string_view& text);
  void begin_item(std::string& json);
  bool open(char bracket, std::string& json);
  void close(std::string& json);

  LiteralSyntax syntax_;
  State state_ = State::kBegin;
  bool key_ = false;   // the string is a key
  char quote_ = '\0';  // of the current string, in Python
  std::vector<Level> levels_;
};

}  // namespace banyan
