// What makes two prefixes the same to one model: a namespace (whatever changes a state without
// being a token: an adapter, a tenant's salt) and one key per position. A token's key is its id;
// negative keys are for what stands in a token's place, such as a part of an image.
//
// The model is not in it: a tree belongs to one. Outside the process it must be; see page_key.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "banyan/request.h"

namespace banyan {

struct PrefixNamespace {
  std::string adapter;
  std::string salt;
  std::string extra_key;
  auto operator<=>(const PrefixNamespace&) const = default;
};

using PrefixToken = TokenId;

// A page with all that comes before it, within one tree: quick to make, and compared with tokens at
// hand. It must not leave the process: collisions can be made, and no model is in it.
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
