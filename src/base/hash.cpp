#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace banyan {

uint64_t hash_bytes(std::string_view bytes) {
  static const char seed = 0;
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), reinterpret_cast<uint64_t>(&seed));
}

}  // namespace banyan
