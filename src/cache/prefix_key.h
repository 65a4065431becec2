// Keys for the radix tree. Two prefixes are the same if they have the same namespace and the same
// key at every position. The namespace covers what affects states besides tokens (an adapter, a
// tenant's salt). A token's key is its id; negative keys identify other inputs, such as parts of an
// image.
//
// The model is not part of these keys, since a tree belongs to one model. Keys that leave the
// process include it; see page_key.h.
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

// Identifies a page and its prefix within one tree. Fast; tokens are compared as well. It must not
// leave the process, since it excludes the model and an attacker can construct collisions.
struct PageHash {
  uint64_t low = 0, high = 0;
  bool operator==(const PageHash&) const = default;
};

// The hash that the first page of a namespace chains from.
PageHash hash_namespace(const PrefixNamespace& name_space);
// XXH3-128 over the parent's hash and the page's tokens.
PageHash hash_page(const PageHash& parent, std::span<const PrefixToken> tokens);

}  // namespace banyan

template <>
struct std::hash<banyan::PageHash> {
  size_t operator()(const banyan::PageHash& hash) const noexcept { return hash.low; }
};
