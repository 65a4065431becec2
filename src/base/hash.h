// Hashes for in-memory tables. The seed is an address, which differs from run to run, so files and
// templates cannot contain keys chosen to collide.
#pragma once

#include <cstdint>
#include <string_view>

namespace banyan {

uint64_t hash_bytes(std::string_view bytes);

// Hash of one number; cheaper than hashing its bytes.
inline uint64_t hash_number(uint64_t number) {
  static const char seed = 0;
  const auto product = static_cast<unsigned __int128>(
                           number ^ (reinterpret_cast<uint64_t>(&seed) * 0xd1b54a32d192ed03)) *
                       0x9e3779b97f4a7c15;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace banyan
