#include "server/token_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "unicode/unicode.h"

namespace banyan {

std::string valid_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    size_t invalid = 0;
    size_t size = unicode::character_size(bytes, invalid);
    if (size > 0) {
      text.append(bytes, 0, size);
    } else {
      text += "\uFFFD";
      size = invalid > 0 ? invalid : bytes.size();
    }
    bytes.remove_prefix(size);
  }
  return text;
}

std::string token_text(const Tokenizer* tokenizer, TokenId id) {
  return tokenizer == nullptr ? std::string() : valid_text(tokenizer->token_bytes(id));
}

std::string token_name(const Tokenizer* tokenizer, TokenId id) {
  if (tokenizer == nullptr) return fmt::format("token_id:{}", id);
  std::string bytes = tokenizer->token_bytes(id);
  if (!unicode::first_invalid(bytes)) return bytes;
  std::string name = "bytes:";
  for (unsigned char byte : bytes) {
    fmt::format_to(std::back_inserter(name), "\\x{:02x}", byte);
  }
  return name;
}

int64_t characters_begun(std::string_view bytes) {
  return std::ranges::count_if(bytes, [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace banyan
