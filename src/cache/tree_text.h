// An index of the text in the radix tree's pages, which finds places where given tokens occur.
//
// The tree's owner adds pages as they are published; nothing is removed. An entry remembers its
// page's hash, which is unique to its namespace and prefix, so entries of evicted pages are
// recognised and skipped. Within one index, newer entries replace older ones where it is full: 24
// bytes a token, at most 3 MB. Engine's thread only; the tree must outlive what is found.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/radix_tree.h"

namespace banyan {

// A place between two tokens of a path in the tree.
class TreePlace {
 public:
  TreePlace() = default;
  TreePlace(const RadixNode& node, int32_t offset);

  // Whether the page is still there.
  bool valid() const;
  // How many tokens before it equal the last ones of `tokens`, at most `most`.
  int64_t common_length(std::span<const TokenId> tokens, int64_t most) const;
  // Steps over the next token and returns it, on the path used last where there are several; -1:
  // the text ends here.
  TokenId next();

  bool operator==(const TreePlace&) const = default;

 private:
  const RadixNode* node_ = nullptr;
  uint64_t hash_ = 0;   // of the page
  int32_t offset_ = 0;  // in the page
};

class TreeText {
 public:
  // Tokens that must match at least.
  static constexpr int64_t kMatchMin = 4;
  static constexpr size_t kPlacesMax = 4;

  TreeText();

  // Adds the full pages of the leased path from position `first` on. `tokens`: those of the path.
  void add(const Lease& lease, std::span<const TokenId> tokens, int64_t first);

  // Valid places after the last kMatchMin tokens of `context`, newest first. Returns the used part
  // of `out`.
  std::span<TreePlace> find(std::span<const TokenId> context,
                            std::span<TreePlace, kPlacesMax> out) const;

 private:
  struct Entry {
    TreePlace place;
    uint32_t key = 0;
  };
  using Bucket = std::array<Entry, kPlacesMax>;  // newest first

  static uint32_t key_of(std::span<const TokenId> tokens);
  Bucket& bucket_of(uint32_t key) { return buckets_[key & (buckets_.size() - 1)]; }
  void insert(const Entry& entry);
  void grow();

  std::vector<Bucket> buckets_;  // a power of two
  size_t entries_ = 0;
};

}  // namespace banyan
