#include "text/tokenizer/byte_level.h"

#include "unicode/unicode.h"

namespace banyan::byte_level {
namespace {

// Printable Latin-1 characters map to themselves; the others are numbered from U+0100.
bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<std::string, 256> character;
  std::array<int, 0x200> byte_of;  // by code point; -1: not in the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
      unicode::append(character[byte], code);
      byte_of[code] = byte;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

const std::array<std::string, 256>& characters() {
  return alphabet().character;
}

void append_spelled(std::string& text, std::string_view bytes) {
  const auto& table = characters();
  for (char byte : bytes) text += table[static_cast<unsigned char>(byte)];
}

bool append_bytes(std::string& bytes, std::string_view spelled) {
  const auto& byte_of = alphabet().byte_of;
  const size_t before = bytes.size();
  for (size_t at = 0; at < spelled.size();) {
    const auto [code, size] = unicode::decode(spelled.data() + at);
    if (code >= byte_of.size() || byte_of[code] < 0) {
      bytes.resize(before);
      return false;
    }
    bytes.push_back(static_cast<char>(byte_of[code]));
    at += size;
  }
  return true;
}

}  // namespace banyan::byte_level
