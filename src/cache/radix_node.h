// A node of the radix tree and what is attached to it. Private to cache/radix_tree: others see
// nodes as opaque pointers with the few numbers that RadixTree hands out.
#pragma once

#include <algorithm>
#include <boost/intrusive/avl_set.hpp>
#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <cstring>
#include <span>

#include "cache/page_key.h"
#include "cache/prefix_key.h"
#include "cache/state_classes.h"

namespace banyan {

namespace intrusive = boost::intrusive;

struct RadixNode;

// Orders token runs by an arbitrary total order that is cheap to compute. It only has to make runs
// with a common beginning neighbours.
inline int compare_tokens(std::span<const PrefixToken> a, std::span<const PrefixToken> b) {
  size_t common = std::min(a.size(), b.size());
  if (common > 0) {
    int order = std::memcmp(a.data(), b.data(), common * sizeof(PrefixToken));
    if (order != 0) return order;
  }
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

using SetHook = intrusive::avl_set_base_hook<>;
using ListHook = intrusive::list_member_hook<>;

// A waiting request, or a prefix that is held, attached to the deepest node on the path of its
// tokens.
struct PrefixWaiter : SetHook {
  std::span<const PrefixToken> tokens;  // only these may be matched
  RadixNode* node = nullptr;
  std::span<const PrefixToken> next;  // the page after the node's end; empty if it is not full
  int64_t resumable = 0;              // tokens that need not be computed if admitted now
  bool tells = true;                  // reported by take_changed()
  ListHook changed;
};

struct NextPageOrder {
  bool operator()(const PrefixWaiter& a, const PrefixWaiter& b) const {
    return compare_tokens(a.next, b.next) < 0;
  }
  bool operator()(const PrefixWaiter& a, std::span<const PrefixToken> b) const {
    return compare_tokens(a.next, b) < 0;
  }
  bool operator()(std::span<const PrefixToken> a, const PrefixWaiter& b) const {
    return compare_tokens(a, b.next) < 0;
  }
};

// What a node has of one class of units: for pages, the unit of its positions; for slots, the state
// exactly at its end.
struct NodeUnit {
  RadixNode* node = nullptr;
  int32_t unit = -1;  // -1: not resident
  int32_t pins = 0;   // leases that reach it, resident or not; of a root's path the
                      // open() calls
  ListHook use;       // its place in the list of evictable units
};

using UseList =
    intrusive::list<NodeUnit, intrusive::member_hook<NodeUnit, ListHook, &NodeUnit::use>>;

// One page of a prefix. A node whose page is not full is a leaf.
struct RadixNode : SetHook {
  struct Order {
    bool operator()(const RadixNode& a, const RadixNode& b) const {
      return compare_tokens(a.tokens, b.tokens) < 0;
    }
    bool operator()(const RadixNode& a, std::span<const PrefixToken> b) const {
      return compare_tokens(a.tokens, b) < 0;
    }
    bool operator()(std::span<const PrefixToken> a, const RadixNode& b) const {
      return compare_tokens(a, b.tokens) < 0;
    }
  };
  using Children =
      intrusive::avl_set<RadixNode, intrusive::base_hook<SetHook>, intrusive::compare<Order>>;
  using Waiters = intrusive::avl_multiset<PrefixWaiter, intrusive::base_hook<SetHook>,
                                          intrusive::compare<NextPageOrder>>;

  RadixNode* parent = nullptr;                  // null: a root
  const PrefixNamespace* name_space = nullptr;  // of a root
  Children children;
  std::span<PrefixToken> tokens;  // of this page
  int64_t end = 0;                // position after its last token
  PageHash hash;                  // of full pages and roots

  NodeUnit* units = nullptr;  // [classes]

  int64_t hits = 0;      // leases that began here
  int64_t last_use = 0;  // the last of them, in leases of the tree, or its count when this was made

  Waiters waiters;
  int64_t waiters_below = 0;  // here and in the subtree

  PageKey key;            // of full pages and roots, once requested; zeros before
  uint8_t announced = 0;  // to routers: a bit for each class (cache/kv_announcer.h)

  // For tiers outside memory, and touched by them only. A bit for each class.
  uint8_t stored = 0;    // a store has the unit, which may have been evicted, ...
  uint8_t writing = 0;   // ... or is about to have it
  uint8_t offered = 0;   // a write was requested since it was last used
  bool reused = false;   // a sequence resumed here or further down
  bool passing = false;  // its snapshots are dropped when its sequence has advanced
  ListHook to_write;

  int64_t begin() const { return end - static_cast<int64_t>(tokens.size()); }
  NodeUnit& path() const { return units[kPathClass]; }
};

using WriteList =
    intrusive::list<RadixNode, intrusive::member_hook<RadixNode, ListHook, &RadixNode::to_write>>;

}  // namespace banyan
