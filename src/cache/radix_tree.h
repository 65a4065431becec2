// Every computed prefix, in one tree: an edge is one page of tokens, a node is a page's states.
//
// A position p is *resumable* iff each class of state has every unit within its reach before p: all
// pages of the path (the tree keeps no node without its page), the window pages of the last
// window_tokens - 1 positions, and, in models with recurrent state, a snapshot exactly at p. From
// this one rule follow matching (the deepest resumable position), pinning (a lease pins the path's
// pages and the window pages within reach) and eviction (least recently used first, for each class
// on its own: pages from the leaves, window pages and snapshots from any node; pages that the
// prompt of a waiter runs through only when there are no others).
//
// Invariants, checked by check():
// - Every unit of a class is in exactly one of: the free list, one node, one sequence.
// - free + cached (in a node that no lease needs) + pinned (in a node that one needs) + private (in
//   no node) = total.
// - In each list of pages by last use, of those awaited and of the others, a node precedes its
//   parent.
//
// Cost: matching, pinning and releasing take time in the pages of the prefix (times the logarithm
// of a node's children); taking and publishing a page take constant time plus the waiters that hang
// on the changed node. No call of a decode step allocates heap memory.
//
// Single-threaded; owned by the Scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"
#include "cache/prefix_key.h"
#include "cache/radix_node.h"
#include "cache/state_classes.h"
#include "cache/state_pools.h"
#include "cache/unit_list.h"

namespace banyan {

class RadixTree;

// How far a prompt's states are there already.
struct PrefixMatch {
  RadixNode* node = nullptr;     // its pages can be used as they are
  RadixNode* partial = nullptr;  // the first tokens of its page can be copied
  int64_t partial_tokens = 0;
  int32_t snapshot = -1;         // recurrent state at the node's end
  RadixNode* deepest = nullptr;  // as far as pages go, resumable or not
  // Tokens that need not be computed.
  int64_t position() const { return node->end + partial_tokens; }
};

// Keeps a path in the tree: RAII. Positions from window_begin() on have their window pages.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { release(); }

  void release();
  RadixNode* node() const { return node_; }
  int64_t end() const { return node_ == nullptr ? 0 : node_->end; }
  int64_t window_begin() const { return window_begin_; }

 private:
  friend class RadixTree;
  RadixTree* tree_ = nullptr;
  RadixNode* node_ = nullptr;
  int64_t window_begin_ = 0;  // a multiple of the page size
};

// The units of one page of a sequence.
struct PageUnits {
  int32_t page = -1;
  int32_t window_page = -1;  // -1: none, or behind the window
};

class RadixTree {
 public:
  RadixTree(const StateClasses& classes, const PoolSizes& counts);

  // ---- Units ---------------------------------------------------------------------------------

  // A unit of the class, evicting the one used longest ago if none is free; -1 if all are in use.
  int32_t take_page();
  int32_t take_window_page();
  int32_t take_slot();
  void give_back_page(int32_t page) { pages_.give_back(page); }
  void give_back_window_page(int32_t page) { window_pages_.give_back(page); }
  void give_back_slot(int32_t slot) { slots_.give_back(slot); }

  struct Use {
    int64_t free = 0, cached = 0, total = 0;
    int64_t available() const { return free + cached; }
  };
  Use pages() const;
  Use window_pages() const;
  Use slots() const;

  // ---- Prefixes ------------------------------------------------------------------------------

  // The root of a namespace, which stays until it is closed as often as it was opened and empty.
  RadixNode* open(const PrefixNamespace& name_space);
  void close(RadixNode* root);

  // The deepest resumable position within `tokens`.
  PrefixMatch match(RadixNode* root, std::span<const PrefixToken> tokens) const;
  // Pages of the path to `node` that would no longer be cached if it were leased.
  int64_t unpinned_pages(const RadixNode* node) const;
  // Pins the path, and its window pages within reach of its end.
  Lease lease(RadixNode* node);
  // The units of the leased path, page by page; -1 for window pages before window_begin().
  void units(const Lease& lease, std::vector<int32_t>& pages,
             std::vector<int32_t>& window_pages) const;
  // The node of the leased path that ends at `position`, which must be a multiple of the page size.
  static RadixNode* node_ending_at(const Lease& lease, int64_t position);
  // No longer needs window pages of positions before `begin`.
  void advance_window(Lease& lease, int64_t begin);

  // Adds the page after the lease's end to the tree, or, where `lease` ends in an open page of its
  // own (publish_open), completes that one; the lease then ends there. `units` goes over to the
  // tree. Returns the units that hold the page from now on: if somebody was faster, theirs, which
  // are equal bit by bit.
  PageUnits publish(Lease& lease, std::span<const PrefixToken> tokens, PageUnits units);
  // The same for a page whose last positions are not computed yet, by a sequence that goes on
  // writing behind `tokens`; or more tokens of such a page. False if the tree has these tokens
  // already: then `units` stays with the caller.
  bool publish_open(Lease& lease, std::span<const PrefixToken> tokens, PageUnits units);
  // Gives `node` the recurrent state at its end, unless it has one; `slot` goes over to the tree.
  void add_snapshot(RadixNode* node, int32_t slot);
  // Evicts the node's snapshot, if it has one.
  void drop_snapshot(RadixNode* node);
  // The node's snapshot, if it has one, was used.
  void touch_snapshot(RadixNode* node);

  // Evicts everything that no lease needs.
  void flush();

  // ---- Waiters -------------------------------------------------------------------------------

  // Hangs a waiter with `tokens` set into the tree and keeps its `resumable` up to date: it is
  // never below the truth, and rises (and falls with the loss of pages) at once. The loss of a
  // snapshot or window page shows only in match().
  void attach(RadixNode* root, PrefixWaiter& waiter);
  void detach(PrefixWaiter& waiter);
  // One whose `resumable` changed since it was last asked for; null if there is none left.
  PrefixWaiter* take_changed();

  // Aborts where an invariant does not hold; returns how many units nodes hold. Takes time in the
  // size of the tree.
  PoolSizes check() const;

 private:
  friend class Lease;
  using PageUses = UseList<&RadixNode::page_use>;

  RadixNode* new_node();
  void drop_node(RadixNode* node);
  RadixNode* child_of(RadixNode* parent, std::span<const PrefixToken> page) const;
  void pin(Lease& lease, RadixNode* node);
  void release(Lease& lease);
  bool evict_page();
  void evict(RadixNode* leaf);
  void free_units(RadixNode& node);
  void drop_root_if_unused(RadixNode* root);

  void set_tokens(RadixNode* node, std::span<const PrefixToken> tokens);
  void insert(RadixNode* parent, RadixNode* node);
  void evict_covered_by(RadixNode* node);
  PageUnits extend_to(Lease& lease, RadixNode* existing, PageUnits units);
  void close_open_page(Lease& lease);

  bool resumable(const RadixNode& node, int64_t window_resident) const;
  int64_t resumable_at(const RadixNode* node) const;
  int64_t reach_begin(int64_t position) const;
  PageUses& page_uses(const RadixNode& node) {
    return node.waiters_below > 0 ? awaited_page_use_ : page_use_;
  }
  void wake(RadixNode* parent, RadixNode* child);
  void hang(PrefixWaiter& waiter, RadixNode* node);
  void count_waiter(RadixNode* node, int64_t change);
  void lift_waiters(RadixNode* leaf);
  void refresh_below(RadixNode* node);
  void update(PrefixWaiter& waiter);
  void check_node(const RadixNode& node) const;

  StateClasses classes_;
  UnitList pages_, window_pages_, slots_;

  // Nodes and their tokens, in memory that is committed when touched.
  MemoryBlock node_memory_, token_memory_;
  RadixNode* free_nodes_ = nullptr;  // linked through `parent`
  int64_t nodes_made_ = 0, nodes_used_ = 0;

  std::map<PrefixNamespace, std::unique_ptr<RadixNode>> roots_;

  // What no lease needs, least recently used first.
  PageUses page_use_, awaited_page_use_;
  UseList<&RadixNode::window_use> window_use_;
  UseList<&RadixNode::snapshot_use> snapshot_use_;
  using Changed =
      intrusive::list<PrefixWaiter,
                      intrusive::member_hook<PrefixWaiter, ListHook, &PrefixWaiter::changed>>;
  Changed changed_;
};

}  // namespace banyan
