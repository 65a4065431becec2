// What names a prefix outside this process: in a store, on another machine, in a router's map.
//
// A store compares keys and never the tokens of a whole prefix, so a key is cryptographic (the
// tree's own PageHash is not: base/digest.h says why) and covers all that can change a bit of a
// state. It can only be made from a StateDigest, and that only from the model as it runs
// (engine/state_identity.h), never from a name that somebody gave it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/digest.h"
#include "cache/prefix_key.h"

namespace banyan {

// Everything that changes a bit of what layers remember. Engines with equal digests may exchange
// states.
class StateDigest {
 public:
  explicit StateDigest(const Digest& digest) : digest_(digest) {}
  const Digest& value() const { return digest_; }
  bool operator==(const StateDigest&) const = default;

 private:
  Digest digest_;
};

// Of a page with all that comes before it. Half a digest: to get somebody else's page takes a
// second preimage, and those take as many attempts as there are keys.
struct PageKey {
  std::array<uint8_t, 16> bytes = {};
  auto operator<=>(const PageKey&) const = default;

  std::string hex() const;
};

// Makes keys one after the other; one thread.
class PageKeys {
 public:
  // What the first page of a namespace is chained to.
  PageKey root(const StateDigest& states, const PrefixNamespace& name_space);
  // Of the page of `tokens` after the one of `parent`.
  PageKey page(const PageKey& parent, std::span<const PrefixToken> tokens);

 private:
  PageKey finish();

  Hasher hasher_;
};

}  // namespace banyan
