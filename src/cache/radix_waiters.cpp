// The waiters of the radix tree: waiting requests are attached to the deepest node that their
// prompt matches. A change to a node then only affects the waiters below it.
#include <unordered_set>

#include "base/check.h"
#include "base/signed.h"
#include "cache/radix_tree.h"

namespace banyan {
namespace {

// Preorder traversal of the subtree of `top`, skipping subtrees without waiters; null at the end.
RadixNode* next_with_waiters(RadixNode* top, RadixNode* node) {
  for (RadixNode& child : node->children) {
    if (child.waiters_below > 0) return &child;
  }
  for (; node != top; node = node->parent) {
    auto& siblings = node->parent->children;
    for (auto it = ++siblings.iterator_to(*node); it != siblings.end(); ++it) {
      if (it->waiters_below > 0) return &*it;
    }
  }
  return nullptr;
}

}  // namespace

// How many tokens before the node's end, within the class's reach, have resident pages.
int64_t RadixTree::resident_before_end(const RadixNode& node, int unit_class) const {
  int64_t begin = classes_[unit_class].reach_begin(node.end), first = node.end;
  for (const RadixNode* n = &node; n->parent != nullptr && first > begin; n = n->parent) {
    if (n->units[unit_class].unit < 0) break;
    first = n->begin();
  }
  return node.end - first;
}

// The deepest position on the path to `node` from which a request can resume.
int64_t RadixTree::resumable_at(const RadixNode* node) const {
  for (; node->parent != nullptr; node = node->parent) {
    UnitCounts resident = {};
    for (int c = 1; c < classes_.count; ++c) {
      bool counts = classes_[c].paged() && classes_[c].decides();
      if (counts) at(resident, c) = resident_before_end(*node, c);
    }
    if (resumable(*node, resident)) return node->end;
  }
  return 0;
}

void RadixTree::update(PrefixWaiter& waiter) {
  int64_t resumable = resumable_at(waiter.node);
  if (resumable == waiter.resumable) return;
  waiter.resumable = resumable;
  if (waiter.tells && !waiter.changed.is_linked()) changed_.push_back(waiter);
}

void RadixTree::attach_to(PrefixWaiter& waiter, RadixNode* node) {
  auto page = as_size(classes_.page_size_tokens);
  std::span<const PrefixToken> rest = waiter.tokens.subspan(as_size(node->end));
  waiter.node = node;
  waiter.next = rest.size() >= page ? rest.first(page) : std::span<const PrefixToken>();
  node->waiters.insert(waiter);
}

// Adds `change` (1 or -1) to the waiters of all nodes on the path. Being waited for counts as a
// use, so pages change lists, deepest first as in release().
void RadixTree::count_waiter(RadixNode* node, int64_t change) {
  for (; node != nullptr; node = node->parent) {
    bool evictable = node->path().use.is_linked();
    unlink(kPathClass, node->path());
    node->waiters_below += change;
    if (evictable) uses_of(kPathClass, *node).push_back(node->path());
  }
}

void RadixTree::attach(RadixNode* root, PrefixWaiter& waiter) {
  auto page = as_size(classes_.page_size_tokens);
  RadixNode* node = root;
  while (as_size(node->end) + page <= waiter.tokens.size()) {
    RadixNode* child = child_of(node, waiter.tokens.subspan(as_size(node->end), page));
    if (child == nullptr) break;
    node = child;
  }
  count_waiter(node, 1);
  attach_to(waiter, node);
  waiter.resumable = resumable_at(node);
}

void RadixTree::detach(PrefixWaiter& waiter) {
  if (waiter.changed.is_linked()) changed_.erase(changed_.iterator_to(waiter));
  waiter.node->waiters.erase(waiter.node->waiters.iterator_to(waiter));
  count_waiter(waiter.node, -1);
  waiter.node = nullptr;
}

PrefixWaiter* RadixTree::take_changed() {
  if (changed_.empty()) return nullptr;
  PrefixWaiter& waiter = changed_.front();
  changed_.pop_front();
  return &waiter;
}

// Moves waiters of `parent` to its new child if their prompts continue with its page.
void RadixTree::wake(RadixNode* parent, RadixNode* child) {
  std::span<const PrefixToken> page = child->tokens;
  auto first = parent->waiters.lower_bound(page, NextPageOrder{});
  while (first != parent->waiters.end() && compare_tokens(first->next, page) == 0) {
    PrefixWaiter& waiter = *first;
    first = parent->waiters.erase(first);
    ++child->waiters_below;
    attach_to(waiter, child);
    update(waiter);
  }
}

// Moves the waiters of an evicted leaf back to its parent. They rank equally there, so they share
// one entry.
void RadixTree::lift_waiters(RadixNode* leaf) {
  RadixNode* parent = leaf->parent;
  auto place = parent->waiters.upper_bound(leaf->tokens, NextPageOrder{});
  leaf->waiters.clear_and_dispose([&](PrefixWaiter* waiter) {
    waiter->node = parent;
    waiter->next = waiter->tokens.subspan(as_size(parent->end), leaf->tokens.size());
    parent->waiters.insert_before(place, *waiter);
    update(*waiter);
  });
  leaf->waiters_below = 0;
}

void RadixTree::refresh_below(RadixNode* node) {
  RadixNode* top = node;
  for (; node != nullptr; node = next_with_waiters(top, node)) {
    for (PrefixWaiter& waiter : node->waiters) update(waiter);
  }
}

// ---- Invariants --------------------------------------------------------------------------------

void RadixTree::check_node(const RadixNode& node) const {
  bool full = std::ssize(node.tokens) == classes_.page_size_tokens;
  CHECK(node.path().unit >= 0 && !node.tokens.empty() && (full || node.children.empty()));
  CHECK(node.end == node.parent->end + std::ssize(node.tokens));
  for (int c = 0; c < classes_.count; ++c) {
    const NodeUnit& unit = node.units[c];
    CHECK(unit.node == &node && unit.pins >= 0);
    CHECK(unit.unit < units_of(c).list.total(), "{} of {}", unit.unit, describe(classes_[c]));
    CHECK(unit.use.is_linked() == (unit.unit >= 0 && unit.pins == 0));
    bool aligned = node.end % classes_.snapshot_alignment_tokens == 0;
    CHECK(unit.unit < 0 || classes_[c].paged() || (classes_[c].snapshots() && aligned));
  }
  int32_t pins_below = 0;
  for (const RadixNode& child : node.children) pins_below += child.path().pins;
  CHECK(node.path().pins >= pins_below, "a leased page whose prefix is not leased");
}

void RadixTree::check_order() const {
  for (const UseList* uses : {&units_of(kPathClass).use, &awaited_}) {
    std::unordered_set<const RadixNode*> earlier;
    for (const NodeUnit& unit : *uses) {
      CHECK((unit.node->waiters_below > 0) == (uses == &awaited_));
      CHECK(!earlier.contains(unit.node->parent), "a page would be evicted before its children");
      earlier.insert(unit.node);
    }
  }
}

UnitCounts RadixTree::check() const {
  int64_t nodes = 0, waiters = 0, waiters_of_roots = 0;
  UnitCounts held = {}, pinned = {};
  std::vector<const RadixNode*> to_visit;
  for (const auto& [name, root] : roots_) {
    to_visit.push_back(&root->node);
    waiters_of_roots += root->node.waiters_below;
  }
  while (!to_visit.empty()) {
    const RadixNode* node = to_visit.back();
    to_visit.pop_back();
    for (const RadixNode& child : node->children) to_visit.push_back(&child);
    waiters += std::ssize(node->waiters);
    if (node->parent == nullptr) continue;
    check_node(*node);
    ++nodes;
    for (int c = 0; c < classes_.count; ++c) {
      at(held, c) += node->units[c].unit >= 0;
      at(pinned, c) += node->units[c].unit >= 0 && node->units[c].pins > 0;
    }
  }
  CHECK(nodes == nodes_used_ && nodes == held[kPathClass] && waiters == waiters_of_roots);
  for (int c = 0; c < classes_.count; ++c) {
    auto i = as_size(c);
    Use now = use(c);
    CHECK(held[i] == pinned[i] + now.cached && held[i] + now.free <= now.total, "{}: {} of {}",
          describe(classes_[c]), held[i], now.total);
  }
  check_order();
  return held;
}

}  // namespace banyan
