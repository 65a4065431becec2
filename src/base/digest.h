// SHA-256 over fields written with their lengths, so that different lists of fields never hash the
// same bytes.
//
// Identifiers that leave the process use this hash instead of XXH3. An attacker who can write
// prompts, weights or records can construct XXH3 collisions; a store or peer that compares only
// hashes would then return another user's states. Cost: about 2 GB/s per core with SHA
// instructions, 0.5 GB/s without, once per checkpoint.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace banyan {

struct Digest {
  std::array<uint8_t, 32> bytes = {};
  auto operator<=>(const Digest&) const = default;

  std::string hex() const;
};

class Hasher {
 public:
  Hasher();

  Hasher& bytes(std::span<const std::byte> bytes);  // raw, without a length
  Hasher& number(uint64_t value);                   // eight bytes, little endian
  Hasher& text(std::string_view text);              // length, then bytes
  Hasher& digest(const Digest& digest);

  // Returns the digest of everything written and resets.
  Digest finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  void flush();

  std::unique_ptr<void, Free> context_;  // owned OpenSSL context
  // Not hashed yet: a call of OpenSSL takes as long as hashing half of a page's tokens.
  std::array<std::byte, 512> buffer_;
  size_t buffered_ = 0;
};

}  // namespace banyan
