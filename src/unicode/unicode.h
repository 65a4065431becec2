// Decodes UTF-8 and classifies code points.
//
// Classes are those of Unicode 16, which the tokenizers of published models use; utf8proc 2.8 has
// Unicode 15 and is corrected by unicode_additions.cpp.
//
// The class table is built on first use (about 10 ms) and is immutable afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::unicode {

// One bit per class; a code point may be in several.
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
  kNfcInert = 1 << 13,       // NFC neither changes it nor joins it to the preceding character
  kNotNormalized = 1 << 14,  // newer than the reference's normalization
  kLetter = kUpper | kLower | kTitle | kModifier | kOtherLetter,
};

// A code point and its length in bytes.
struct Character {
  char32_t code;
  uint32_t size;
};

// Decodes the character at `at`, which must be the start of a character in valid UTF-8.
inline Character decode(const char* at) {
  auto byte = [at](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (lead < 0xf0) return {(lead & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(lead & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

void append(std::string& text, char32_t code);

// The length of the valid character at the start of `bytes`, or 0. If 0, `invalid_size` is the
// number of bytes replaced by one U+FFFD (1 to 3), or 0 if they are the incomplete start of a valid
// character.
size_t character_size(std::string_view bytes, size_t& invalid_size);

// The offset of the first invalid UTF-8 byte, if any.
std::optional<size_t> first_invalid(std::string_view text);

bool is_ascii(std::string_view text);

// `text` with every `from` (not empty) replaced by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

// Classes by code point: a two-level table of blocks of 256.
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
// Whether `code` is in any of the classes of `mask`.
inline bool is(char32_t code, uint32_t mask) {
  return (classes()[code] & mask) != 0;
}

// Code points added to Unicode after version 14, or whose category changed since.
struct Addition {
  char32_t first, last;
  int category;  // utf8proc_category_t
};
std::span<const Addition> additions();

// The two letters of a utf8proc_category_t, for example "Lu".
std::string_view category_name(int category);

}  // namespace banyan::unicode
