#include "cache/tree_text.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kBucketsMin = size_t{1} << 8, kBucketsMax = size_t{1} << 15;
// Where paths fork, so many children are compared.
constexpr int kChildrenMax = 8;

const RadixNode* child_used_last(const RadixNode& node) {
  const RadixNode* last = nullptr;
  int left = kChildrenMax;
  for (const RadixNode& child : node.children) {
    if (last == nullptr || child.last_use > last->last_use) last = &child;
    if (--left == 0) break;
  }
  return last;
}

}  // namespace

TreePlace::TreePlace(const RadixNode& node, int32_t offset)
    : node_(&node), hash_(node.hash.low), offset_(offset) {}

// Nodes are never unmapped, and a dropped one has no hash.
bool TreePlace::valid() const {
  return node_ != nullptr && hash_ != 0 && node_->hash.low == hash_;
}

int64_t TreePlace::common_length(std::span<const TokenId> tokens, int64_t most) const {
  most = std::min(most, std::ssize(tokens));
  const RadixNode* node = node_;
  int64_t offset = offset_, length = 0;
  while (length < most) {
    if (offset == 0) {
      node = node->parent;
      if (node == nullptr || node->parent == nullptr) break;
      offset = std::ssize(node->tokens);
    }
    if (at(node->tokens, offset - 1) != at(tokens, std::ssize(tokens) - 1 - length)) break;
    --offset;
    ++length;
  }
  return length;
}

TokenId TreePlace::next() {
  if (offset_ == std::ssize(node_->tokens)) {
    const RadixNode* child = child_used_last(*node_);
    if (child == nullptr) return -1;
    *this = TreePlace(*child, 0);
  }
  return at(node_->tokens, offset_++);
}

TreeText::TreeText() : buckets_(kBucketsMin) {}

uint32_t TreeText::key_of(std::span<const TokenId> tokens) {
  uint64_t hash = 0;
  for (TokenId token : tokens) {
    hash = (hash ^ static_cast<uint32_t>(token)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<uint32_t>(hash);
}

void TreeText::insert(const Entry& entry) {
  Bucket& bucket = bucket_of(entry.key);
  auto same = std::ranges::find(bucket, entry.place, &Entry::place);
  if (same == bucket.end()) {
    same = bucket.end() - 1;
    ++entries_;
  }
  std::move_backward(bucket.begin(), same, same + 1);
  bucket.front() = entry;
}

void TreeText::grow() {
  std::vector<Bucket> before(buckets_.size() * 2);
  std::swap(before, buckets_);
  entries_ = 0;
  for (const Bucket& bucket : before) {
    for (auto entry = bucket.rbegin(); entry != bucket.rend(); ++entry) {
      if (entry->place.valid()) insert(*entry);
    }
  }
}

void TreeText::add(const Lease& lease, std::span<const TokenId> tokens, int64_t first) {
  for (const RadixNode* node = lease.node(); node != nullptr && node->end > first;
       node = node->parent) {
    if (node->hash == PageHash()) continue;  // not full yet
    for (int64_t end = node->end; end > std::max(node->begin(), kMatchMin - 1); --end) {
      uint32_t key = key_of(slice(tokens, end - kMatchMin, kMatchMin));
      insert({TreePlace(*node, static_cast<int32_t>(end - node->begin())), key});
    }
    if (entries_ > buckets_.size() * 2 && buckets_.size() < kBucketsMax) grow();
  }
}

std::span<TreePlace> TreeText::find(std::span<const TokenId> context,
                                    std::span<TreePlace, kPlacesMax> out) const {
  if (std::ssize(context) < kMatchMin) return {};
  uint32_t key = key_of(context.last(as_size(kMatchMin)));
  size_t found = 0;
  for (const Entry& entry : buckets_[key & (buckets_.size() - 1)]) {
    if (entry.key == key && entry.place.valid()) out[found++] = entry.place;
  }
  return out.first(found);
}

}  // namespace banyan
