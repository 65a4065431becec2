#include "base/base64.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"

namespace banyan {
namespace {

// libcrypto counts in int, and reads and writes whole blocks of 4 characters or 3 bytes.
constexpr size_t kBytesMax = size_t{1} << 29;

}  // namespace

std::string to_base64(std::string_view bytes) {
  CHECK(bytes.size() <= kBytesMax, "{} bytes", bytes.size());
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // it ends the text with a zero
  int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                             reinterpret_cast<const unsigned char*>(bytes.data()),
                             static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1 || text.size() > kBytesMax) return std::nullopt;
  // libcrypto would skip blanks, line ends and what it takes for the end of a file.
  bool known = std::ranges::all_of(text, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/';
  });
  if (!known) return std::nullopt;
  size_t missing = (4 - text.size() % 4) % 4;
  std::string padded = std::string(text) + std::string(missing, '=');
  std::string bytes(padded.size() / 4 * 3, '\0');
  int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                             reinterpret_cast<const unsigned char*>(padded.data()),
                             static_cast<int>(padded.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<size_t>(size) - missing);
  return bytes;
}

}  // namespace banyan
