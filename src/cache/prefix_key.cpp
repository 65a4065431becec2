#include "cache/prefix_key.h"

#include <xxhash.h>

namespace banyan {
namespace {

PageHash to_page_hash(XXH128_hash_t hash) {
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace

PageHash hash_namespace(const PrefixNamespace& name_space) {
  std::string bytes;  // each part is preceded by its length, so that the encoding is unambiguous
  for (const std::string* part : {&name_space.adapter, &name_space.salt, &name_space.extra_key}) {
    bytes += std::to_string(part->size()) + ":" + *part;
  }
  return to_page_hash(XXH3_128bits(bytes.data(), bytes.size()));
}

PageHash hash_page(const PageHash& parent, std::span<const PrefixToken> tokens) {
  // Seeding with the parent uses only 64 of its bits, so hash all four halves again.
  XXH128_hash_t own = XXH3_128bits_withSeed(tokens.data(), tokens.size_bytes(), parent.low);
  const uint64_t chain[4] = {parent.low, parent.high, own.low64, own.high64};
  return to_page_hash(XXH3_128bits(chain, sizeof(chain)));
}

}  // namespace banyan
