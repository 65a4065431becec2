// Computes the keys of a tree's pages. Nodes store their keys, so that none is computed twice.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cache/page_key.h"
#include "cache/radix_node.h"

namespace banyan {

class NodeKeys {
 public:
  // Without a digest, in a simulation, keys are the tree's own hashes: fast to compute, and
  // meaningless outside the process.
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
