// Every computed prefix, in one tree: an edge is one page of tokens, a node is a page's states.
//
// A position p is *resumable* iff each class of units that decides (cache/state_classes.h) has
// every unit within its reach before p: of the path's class all pages (the tree keeps no node
// without one), of a window the pages of its last window_tokens - 1 positions, of a state at a
// point a snapshot exactly at p. From this one rule follow matching (the deepest resumable
// position), pinning (a lease pins the pages within each class's reach, as far as they are there)
// and eviction (least recently used first, for each class on its own: pages of the path from the
// leaves, other units from any node; pages of the path that the prompt of a waiter runs through
// only when there are no others).
//
// Invariants, checked by check():
// - Every unit of a class is in exactly one of: the free list, one node, one sequence, one transfer
//   to or from a tier.
// - free + cached (in a node that no lease needs) + pinned (in a node that one needs) + private (in
//   no node) = total.
// - In each list of pages by last use, of those awaited and of the others, a node precedes its
//   parent.
//
// Cost: matching, pinning and releasing take time in the pages of the prefix (times the logarithm
// of a node's children); taking and publishing a page take constant time plus the waiters attached
// to the changed node. No call of a decode step allocates heap memory.
//
// Single-threaded; owned by the Scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/os/memory.h"
#include "cache/prefix_key.h"
#include "cache/radix_node.h"
#include "cache/state_classes.h"
#include "cache/unit_list.h"

namespace banyan {

class RadixTree;

// How much of a prompt's states is there already.
struct PrefixMatch {
  RadixNode* node = nullptr;     // its pages can be used as they are
  RadixNode* partial = nullptr;  // the first tokens of its page can be copied
  int64_t partial_tokens = 0;
  RadixNode* deepest = nullptr;  // as far as pages go, resumable or not
  // Tokens that need not be computed.
  int64_t position() const { return node->end + partial_tokens; }
};

// A watcher of which units come and go, to store them outside memory or to announce them. Called
// while the tree changes: it must not call the tree.
class UnitWatcher {
 public:
  virtual ~UnitWatcher() = default;
  // The node of a full page has gained a unit.
  virtual void gained(RadixNode& node) = 0;
  // The node's unit of the class is evicted. True: ownership passes to the watcher, which gives it
  // back.
  virtual bool loses(RadixNode& node, int unit_class) = 0;
  // The node is removed, after its units.
  virtual void goes(RadixNode&) {}
  // All units are about to be evicted, one by one.
  virtual void clears() {}
};

// Keeps a path in the tree (RAII). Pages of a class from begin() on stay, as far as they are there.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { release(); }

  void release();
  RadixNode* node() const { return node_; }
  int64_t end() const { return node_ == nullptr ? 0 : node_->end; }
  int64_t begin(int unit_class) const { return begins_[static_cast<size_t>(unit_class)]; }

 private:
  friend class RadixTree;
  RadixTree* tree_ = nullptr;
  RadixNode* node_ = nullptr;
  UnitCounts begins_ = {};  // multiples of the page size
};

class RadixTree {
 public:
  RadixTree(const StateClasses& classes, const UnitCounts& counts);
  // Memory of a node, without its page's states.
  static int64_t node_bytes(const StateClasses& classes);

  // ---- Units ---------------------------------------------------------------------------------

  // A unit of the class. Evicts the least recently used one if none is free; -1 if all are in use.
  int32_t take(int unit_class);
  void give_back(int unit_class, int32_t unit) { units_of(unit_class).list.give_back(unit); }
  // Gives back all of `units`.
  void give_back(const UnitSet& units);
  // The unit that stands in for a missing one of the class: zeros, which nobody writes. -1: there
  // is none.
  int32_t blank(int unit_class) const;

  struct Use {
    int64_t free = 0, cached = 0, total = 0;
    int64_t available() const { return free + cached; }
  };
  Use use(int unit_class) const;

  // ---- Prefixes ------------------------------------------------------------------------------

  // The root of a namespace. It stays until it is empty and closed as often as it was opened.
  RadixNode* open(const PrefixNamespace& name_space);
  void close(RadixNode* root);

  // The deepest resumable position within `tokens`.
  PrefixMatch match(RadixNode* root, std::span<const PrefixToken> tokens) const;
  // Number of pages of the path to `node` that would no longer be evictable if it were leased.
  int64_t unpinned_pages(const RadixNode* node) const;
  // Pins the path, and the pages of each class within reach of its end.
  Lease lease(RadixNode* node);
  // Units of the leased path in a class of pages: -1 before lease.begin(), and the blank one where
  // a unit is missing.
  void units(const Lease& lease, int unit_class, std::vector<int32_t>& units) const;
  // The node's units of each class.
  UnitSet units(const RadixNode& node) const;
  // The node of the leased path that ends at `position`, which must be a multiple of the page size.
  static RadixNode* node_ending_at(const Lease& lease, int64_t position);
  // No longer needs pages of the class before position `begin`.
  void advance(Lease& lease, int unit_class, int64_t begin);

  // Adds the page after the lease's end to the tree, and moves the lease's end there. If `lease`
  // ends in an open page of its own (publish_open), completes that one instead. Takes over `units`
  // and returns the units that hold the page from now on. If another sequence was faster, these are
  // its units, which are equal bit for bit.
  UnitSet publish(Lease& lease, std::span<const PrefixToken> tokens, const UnitSet& units);
  // The same for a page whose last positions are not computed yet, by a sequence that will write
  // more after `tokens`; or for more tokens of such a page. False if the tree has these tokens
  // already: `units` then stays with the caller.
  bool publish_open(Lease& lease, std::span<const PrefixToken> tokens, const UnitSet& units);
  // Gives `node` the pages that it lacks, except one of the path; takes over `units`.
  void fill(RadixNode* node, const UnitSet& units);
  // Gives `node` the states at its end, of each class that has none there; takes over `slots`.
  void add_snapshots(RadixNode* node, const UnitSet& slots);
  // Evicts the node's snapshots.
  void drop_snapshots(RadixNode* node);
  // The node's snapshots were used.
  void touch_snapshots(RadixNode* node);

  // Evicts everything that no lease needs.
  void flush();

  // ---- For tiers and announcements -------------------------------------------------------------

  // At most two watchers.
  void watch(UnitWatcher* watcher);
  void unwatch(UnitWatcher* watcher);
  // Visits nodes in the order in which their units of the class will be evicted, until `visit`
  // returns false.
  template <class Visit>
  void visit_oldest(int unit_class, Visit visit) {
    for (NodeUnit& unit : units_of(unit_class).use) {
      if (!visit(*unit.node)) return;
    }
    if (unit_class != kPathClass) return;
    for (NodeUnit& unit : awaited_) {
      if (!visit(*unit.node)) return;
    }
  }
  // Visits nodes without a lease, the last to be evicted first.
  template <class Visit>
  void visit_hottest(Visit visit) {
    for (UseList* uses : {&awaited_, &units_of(kPathClass).use}) {
      for (auto it = uses->rbegin(); it != uses->rend(); ++it) visit(*it->node);
    }
  }
  // All of them, parents first.
  template <class Visit>
  void visit_nodes(Visit visit) {
    std::vector<RadixNode*> to_visit;
    for (auto& [name_space, root] : roots_) to_visit.push_back(&root->node);
    while (!to_visit.empty()) {
      RadixNode* node = to_visit.back();
      to_visit.pop_back();
      for (RadixNode& child : node->children) to_visit.push_back(&child);
      if (node->parent != nullptr) visit(*node);
    }
  }

  // ---- For tree_view ---------------------------------------------------------------------------

  const StateClasses& classes() const { return classes_; }
  int64_t last_use() const { return leases_; }
  template <class Visit>
  void for_each_root(Visit visit) const {
    for (const auto& [name_space, root] : roots_) visit(std::as_const(root->node));
  }

  // ---- Waiters -------------------------------------------------------------------------------

  // Attaches a waiter with `tokens` set and keeps its `resumable` up to date. The value is never
  // too low, and changes at once when pages of the path come or go. The loss of other units shows
  // only in match().
  void attach(RadixNode* root, PrefixWaiter& waiter);
  void detach(PrefixWaiter& waiter);
  // A waiter whose `resumable` changed since the last call; null if none is left.
  PrefixWaiter* take_changed();

  // Aborts where an invariant does not hold; returns how many units nodes hold. Takes time in the
  // size of the tree.
  UnitCounts check() const;

 private:
  friend class Lease;
  struct Units {
    explicit Units(int64_t count) : list(count) {}
    UnitList list;
    UseList use;  // what no lease needs, least recently used first
  };
  // A root, whose only units are its pins.
  struct Root {
    RadixNode node;
    PerClass<NodeUnit> units;
  };

  Units& units_of(int unit_class) { return units_[static_cast<size_t>(unit_class)]; }
  const Units& units_of(int unit_class) const { return units_[static_cast<size_t>(unit_class)]; }
  UseList& uses_of(int unit_class, const RadixNode& node) {
    bool awaited = unit_class == kPathClass && node.waiters_below > 0;
    return awaited ? awaited_ : units_of(unit_class).use;
  }
  void unlink(int unit_class, NodeUnit& unit);
  void drop_unit(int unit_class, NodeUnit& unit);
  void set_units(Lease& lease, RadixNode* node, UnitSet& units);

  RadixNode* new_node();
  void drop_node(RadixNode* node);
  void match_part(std::span<const PrefixToken> rest, PrefixMatch& match) const;
  RadixNode* child_of(RadixNode* parent, std::span<const PrefixToken> page) const;
  void pin(Lease& lease, RadixNode* node);
  void release(Lease& lease);
  static UseList::iterator oldest_unwritten(UseList& uses, int unit_class);
  bool evict_one(int unit_class);
  bool evict_leaf();
  void evict(RadixNode* leaf);
  void drop_root_if_unused(RadixNode* root);

  void set_tokens(RadixNode* node, std::span<const PrefixToken> tokens);
  void tell_gained(RadixNode& node);
  void insert(RadixNode* parent, RadixNode* node);
  void evict_covered_by(RadixNode* node);
  UnitSet extend_to(Lease& lease, RadixNode* existing, const UnitSet& units);
  void close_open_page(Lease& lease);

  bool resumable(const RadixNode& node, const UnitCounts& resident) const;
  int64_t resident_before_end(const RadixNode& node, int unit_class) const;
  int64_t resumable_at(const RadixNode* node) const;
  void wake(RadixNode* parent, RadixNode* child);
  void attach_to(PrefixWaiter& waiter, RadixNode* node);
  void count_waiter(RadixNode* node, int64_t change);
  void lift_waiters(RadixNode* leaf);
  void refresh_below(RadixNode* node);
  void update(PrefixWaiter& waiter);
  void check_node(const RadixNode& node) const;
  void check_order() const;

  const StateClasses classes_;

  // Nodes with their units, and their tokens, in memory that is committed when touched.
  MemoryBlock node_memory_, token_memory_;
  RadixNode* free_nodes_ = nullptr;  // linked through `parent`
  int64_t nodes_made_ = 0, nodes_used_ = 0;
  int64_t leases_ = 0;  // so far

  std::map<PrefixNamespace, std::unique_ptr<Root>> roots_;

  std::vector<Units> units_;  // [classes]
  UseList awaited_;           // of the path: what waiters run through
  std::array<UnitWatcher*, 2> watchers_ = {};
  using Changed =
      intrusive::list<PrefixWaiter,
                      intrusive::member_hook<PrefixWaiter, ListHook, &PrefixWaiter::changed>>;
  Changed changed_;
};

}  // namespace banyan
