// Keys of the pages of one tree. Those of nodes are kept in them, so that none is made twice.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cache/page_key.h"
#include "cache/radix_node.h"

namespace banyan {

class NodeKeys {
 public:
  // Without a digest, in a simulation, keys are the tree's own hashes: quick to make, and of no
  // meaning to anybody else.
  explicit NodeKeys(std::optional<StateDigest> states) : states_(std::move(states)) {}

  // Of a root or of a full page.
  const PageKey& of(RadixNode& node);
  PageKey next(const PageKey& parent, std::span<const PrefixToken> tokens) {
    return keys_.page(parent, tokens);
  }

 private:
  std::optional<StateDigest> states_;
  PageKeys keys_;
  std::vector<RadixNode*> path_;  // scratch
};

// The key that stands for a tree's own hash.
PageKey key_of_hash(const PageHash& hash);

}  // namespace banyan
