// GPT-2's byte-level alphabet: writes each of the 256 bytes as one printable character (a space as
// U+0120 'Ġ'), so that a vocabulary of byte strings can be stored as text.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace banyan::byte_level {

// The character for each byte, in UTF-8 (1 or 2 bytes).
const std::array<std::string, 256>& characters();

// Appends `bytes`, encoded in the alphabet.
void append_spelled(std::string& text, std::string_view bytes);

// Appends the decoded bytes of `spelled`. Returns false and appends nothing if a character is not
// in the alphabet.
bool append_bytes(std::string& bytes, std::string_view spelled);

}  // namespace banyan::byte_level
