// Characters: decoding UTF-8, and which classes a code point is in.
//
// The classes are those of Unicode 16, because the tokenizers that models were published with
// classify by it; utf8proc 2.8 knows Unicode 15 and is corrected by unicode_additions.cpp.
//
// The class table is built once, on first use (about 10 ms), and is immutable from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::unicode {

// One bit per class; a code point is in several.
enum Class : uint32_t {
  kUpper = 1 << 0,           // Lu
  kLower = 1 << 1,           // Ll
  kTitle = 1 << 2,           // Lt
  kModifier = 1 << 3,        // Lm
  kOtherLetter = 1 << 4,     // Lo
  kMark = 1 << 5,            // M
  kNumber = 1 << 6,          // N
  kPunctuation = 1 << 7,     // P
  kSymbol = 1 << 8,          // S
  kSpace = 1 << 9,           // White_Space: what \s matches
  kNewline = 1 << 10,        // \r and \n
  kHan = 1 << 11,            // Script=Han
  kWord = 1 << 12,           // what \w matches: alphabetic, M, Nd, Pc, joiners
  kNfcInert = 1 << 13,       // NFC neither changes it nor joins it to what stands before it
  kNotNormalized = 1 << 14,  // too new for the reference's normalization forms
  kLetter = kUpper | kLower | kTitle | kModifier | kOtherLetter,
};

// A code point and the bytes that it takes.
struct Character {
  char32_t code;
  uint32_t size;
};

// Decodes the character at `at`, which must be the start of one in valid UTF-8.
inline Character decode(const char* at) {
  auto byte = [at](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

void append(std::string& text, char32_t code);

// The number of bytes at the start of `bytes` that make one valid character; 0 if they are not
// valid, and then `invalid_size` is how many of them one U+FFFD stands for (1 to 3), or 0 if they
// are the incomplete beginning of a valid character.
size_t character_size(std::string_view bytes, size_t& invalid_size);

// Where `text` stops being valid UTF-8, if it does.
std::optional<size_t> first_invalid(std::string_view text);

bool is_ascii(std::string_view text);

// `text` with every `from`, which is not empty, replaced by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Which classes each code point is in; two steps: block of 256, then the code point within it.
class ClassTable {
 public:
  ClassTable();
  uint32_t operator[](char32_t code) const {
    return classes_[static_cast<size_t>(blocks_[code >> 8]) << 8 | (code & 0xff)];
  }

 private:
  std::vector<uint16_t> blocks_;
  std::vector<uint16_t> classes_;  // bits of Class
};

const ClassTable& classes();
// Whether `code` is in one of the classes of `mask`.
inline bool is(char32_t code, uint32_t mask) {
  return (classes()[code] & mask) != 0;
}

// Code points that came into Unicode after version 14, or changed their category since.
struct Addition {
  char32_t first, last;
  int category;  // utf8proc_category_t
};
std::span<const Addition> additions();

// The two letters of a utf8proc_category_t, for example "Lu".
std::string_view category_name(int category);

}  // namespace banyan::unicode
