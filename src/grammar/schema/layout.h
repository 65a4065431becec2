// How a text that may be JSON is laid out: where it puts spaces and line breaks, as far as it
// shows. Grammars with flexible whitespace leave a choice there, but a writer's habits seldom
// change within a text; so where a matcher proposes what comes next, it goes by them. Objects and
// arrays that may be empty are guessed not to be. A wrong guess costs a rejected draft and is
// corrected by what comes instead.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

namespace banyan {

// A plain value of a few words: remember it to go back.
class JsonLayout {
 public:
  // The text goes on with `bytes`.
  void take(std::string_view bytes);

  // The byte that is likely next among `choices`, which are what may follow; -1: who knows.
  int likely(const std::bitset<256>& choices) const;

  // Whether likely() may know, for which the choices need not be found out.
  bool between_tokens() const { return !in_string_ && last_ != 0; }

 private:
  enum class Space : uint8_t { kNone, kOne, kLine };
  // What comes before whitespace, or after it.
  enum Place : uint8_t { kColon, kComma, kOpening, kClosing, kPlaces };

  void end_whitespace(uint8_t next);
  int whitespace(Space space, int indent) const;
  int space_before(int next) const;

  // Until the text shows others: of most models, and of Python's json.dumps.
  std::array<Space, kPlaces> habits_ = {Space::kOne, Space::kOne, Space::kNone, Space::kNone};
  bool in_string_ = false, escaped_ = false;
  uint8_t last_ = 0;     // byte that was no whitespace
  bool broken_ = false;  // there was a line break since
  uint16_t spaces_ = 0;  // since then
  uint16_t indent_ = 0;  // of the line of last_
  uint16_t step_ = 2;    // from one depth to the next
};

}  // namespace banyan
