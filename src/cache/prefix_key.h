// What makes two prefixes the same: a namespace (whatever changes a state without being a token:
// the model, an adapter, a tenant's salt) and one key per position. A token's key is its id;
// negative keys are for what stands in a token's place, such as a part of an image.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "banyan/request.h"

namespace banyan {

struct PrefixNamespace {
  std::string model_fingerprint;
  std::string adapter;
  std::string salt;
  std::string extra_key;
  auto operator<=>(const PrefixNamespace&) const = default;
};

using PrefixToken = TokenId;

// A page with all that comes before it: two pages hold the same states iff their hashes are equal,
// within this process and between machines of one byte order.
struct PageHash {
  uint64_t low = 0, high = 0;
  bool operator==(const PageHash&) const = default;
};

// What the first page of a namespace is chained to.
PageHash hash_namespace(const PrefixNamespace& name_space);
// XXH3-128 over the parent's hash and the page's tokens.
PageHash hash_page(const PageHash& parent, std::span<const PrefixToken> tokens);

}  // namespace banyan

template <>
struct std::hash<banyan::PageHash> {
  size_t operator()(const banyan::PageHash& hash) const noexcept { return hash.low; }
};
