// Keys that identify a prefix outside this process: in a store, on another machine, in a router.
//
// A store compares keys, never the tokens of a whole prefix. So a key is cryptographic (the radix
// tree's PageHash is not; base/digest.h says why) and covers everything that affects a bit of the
// state. Keys are derived from a StateDigest, which in turn is computed from the loaded model
// (engine/startup/state_identity.h), never from a user-supplied name.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/digest.h"
#include "cache/prefix_key.h"

namespace banyan {

// A digest of everything that affects a bit of the layers' states. Engines with equal digests may
// exchange states.
class StateDigest {
 public:
  explicit StateDigest(const Digest& digest) : digest_(digest) {}
  const Digest& value() const { return digest_; }
  bool operator==(const StateDigest&) const = default;

 private:
  Digest digest_;
};

// Identifies a page and its whole prefix. Half a digest suffices: reading someone else's page
// requires a second preimage, which takes about 2^128 attempts.
struct PageKey {
  std::array<uint8_t, 16> bytes = {};
  auto operator<=>(const PageKey&) const = default;

  std::string hex() const;
};

// Computes a chain of keys. Use from one thread.
class PageKeys {
 public:
  // The key that the first page of a namespace chains from.
  PageKey root(const StateDigest& states, const PrefixNamespace& name_space);
  // The key of page `tokens`, whose preceding page has key `parent`.
  PageKey page(const PageKey& parent, std::span<const PrefixToken> tokens);

 private:
  PageKey finish();

  Hasher hasher_;
};

}  // namespace banyan
