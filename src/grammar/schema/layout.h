// Observes the layout of JSON text: where it has spaces and line breaks. Grammars with flexible
// whitespace allow any layout, but a writer rarely changes style within a text, so a matcher drafts
// the layout seen so far. It guesses that objects and arrays which may be empty are not. A wrong
// guess costs one rejected draft and corrects the habit.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

namespace banyan {

// A value of a few words: copy it to save a state for rollback.
class JsonLayout {
 public:
  // Advances over `bytes`.
  void take(std::string_view bytes);

  // The likely next byte among `choices`, the bytes that may follow; -1 if unknown.
  int likely(const std::bitset<256>& choices) const;

  // Whether likely() may have an answer; cheaper than computing the choices first.
  bool between_tokens() const { return !in_string_ && last_ != 0; }

 private:
  enum class Space : uint8_t { kNone, kOne, kLine };
  // The byte before the whitespace, or after it.
  enum Place : uint8_t { kColon, kComma, kOpening, kClosing, kPlaces };

  void end_whitespace(uint8_t next);
  int whitespace(Space space, int indent) const;
  int space_before(int next) const;

  // Defaults until the text shows otherwise: those of most models and of Python's json.dumps.
  std::array<Space, kPlaces> habits_ = {Space::kOne, Space::kOne, Space::kNone, Space::kNone};
  bool in_string_ = false, escaped_ = false;
  uint8_t last_ = 0;     // last byte that was not whitespace
  bool broken_ = false;  // a line break followed last_
  uint16_t spaces_ = 0;  // spaces after last_ or that line break
  uint16_t indent_ = 0;  // indent of the line of last_
  uint16_t step_ = 2;    // indent added per nesting depth
};

}  // namespace banyan
