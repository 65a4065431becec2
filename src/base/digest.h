// SHA-256 over fields that are written with their lengths, so that no two lists of fields hash the
// same bytes.
//
// Identity that leaves a process takes this hash and not XXH3: a person who may write prompts,
// weights or records can make two inputs with one XXH3, and a store or a peer that compares hashes
// alone would then hand out another user's states. The price is small: some 2 GB/s a core where the
// processor has instructions for it, 0.5 where not, paid once per checkpoint.
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

  Hasher& bytes(std::span<const std::byte> bytes);  // as they are, without a length
  Hasher& number(uint64_t value);                   // eight bytes, little endian
  Hasher& text(std::string_view text);              // its length, then its bytes
  Hasher& digest(const Digest& digest);

  // Of all that was written; begins again.
  Digest finish();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;  // OpenSSL's
};

}  // namespace banyan
