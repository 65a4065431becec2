// Requests that wait, hanging on the nodes that their prompts run through: a change of the tree
// touches those below the changed node and no other.
#include <unordered_set>

#include "base/check.h"
#include "cache/radix_tree.h"

namespace banyan {
namespace {

// The next node of a walk over the subtree of `top`, parents first; null at its end. Subtrees
// without waiters are passed over.
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

// Deepest resumable position on the path to `node`.
int64_t RadixTree::resumable_at(const RadixNode* node) const {
  if (classes_.window_tokens == 0 && !classes_.recurrent) return node->end;
  for (; node->parent != nullptr; node = node->parent) {
    int64_t resident = 0;
    for (const RadixNode* n = node; n->parent != nullptr && n->window_page >= 0; n = n->parent) {
      resident = node->end - n->begin();
      if (n->begin() <= reach_begin(node->end)) break;
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

void RadixTree::hang(PrefixWaiter& waiter, RadixNode* node) {
  auto page = static_cast<size_t>(classes_.page_size_tokens);
  std::span<const PrefixToken> rest = waiter.tokens.subspan(static_cast<size_t>(node->end));
  waiter.node = node;
  waiter.next = rest.size() >= page ? rest.first(page) : std::span<const PrefixToken>();
  node->waiters.insert(waiter);
}

// One more or less waits for the path to `node`, which counts as a use of its pages. They go into
// their lists deepest first, as in release().
void RadixTree::count_waiter(RadixNode* node, int64_t change) {
  for (; node != nullptr; node = node->parent) {
    bool evictable = node->page_use.is_linked();
    if (evictable) page_uses(*node).erase(page_uses(*node).iterator_to(*node));
    node->waiters_below += change;
    if (evictable) page_uses(*node).push_back(*node);
  }
}

void RadixTree::attach(RadixNode* root, PrefixWaiter& waiter) {
  auto page = static_cast<size_t>(classes_.page_size_tokens);
  RadixNode* node = root;
  while (static_cast<size_t>(node->end) + page <= waiter.tokens.size()) {
    RadixNode* child = child_of(node, waiter.tokens.subspan(static_cast<size_t>(node->end), page));
    if (child == nullptr) break;
    node = child;
  }
  count_waiter(node, 1);
  hang(waiter, node);
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

// Those that hung on `parent` and go on with the page of its new child move there.
void RadixTree::wake(RadixNode* parent, RadixNode* child) {
  std::span<const PrefixToken> page = child->tokens;
  auto first = parent->waiters.lower_bound(page, NextPageOrder{});
  while (first != parent->waiters.end() && compare_tokens(first->next, page) == 0) {
    PrefixWaiter& waiter = *first;
    first = parent->waiters.erase(first);
    ++child->waiters_below;
    hang(waiter, child);
    update(waiter);
  }
}

// Those of a leaf that goes wait for its page again. They are equals in the parent's order, so that
// one place serves them all.
void RadixTree::lift_waiters(RadixNode* leaf) {
  RadixNode* parent = leaf->parent;
  auto place = parent->waiters.upper_bound(leaf->tokens, NextPageOrder{});
  leaf->waiters.clear_and_dispose([&](PrefixWaiter* waiter) {
    waiter->node = parent;
    waiter->next = waiter->tokens.subspan(static_cast<size_t>(parent->end), leaf->tokens.size());
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
  bool full = static_cast<int64_t>(node.tokens.size()) == classes_.page_size_tokens;
  CHECK(node.page >= 0 && !node.tokens.empty() && (full || node.children.empty()));
  CHECK(node.end == node.parent->end + static_cast<int64_t>(node.tokens.size()));
  CHECK(node.page_use.is_linked() == (node.pins == 0));
  CHECK(node.window_use.is_linked() == (node.window_page >= 0 && node.window_pins == 0));
  CHECK(node.snapshot_use.is_linked() == (node.snapshot >= 0));
  CHECK(node.snapshot < 0 || node.end % classes_.resume_alignment_tokens == 0);
  int32_t pins_below = 0;
  for (const RadixNode& child : node.children) pins_below += child.pins;
  CHECK(node.pins >= pins_below, "a leased page whose beginning is not");
}

PoolSizes RadixTree::check() const {
  int64_t nodes = 0, pinned = 0, windows = 0, snapshots = 0, waiters = 0, waiters_of_roots = 0;
  std::vector<const RadixNode*> to_visit;
  for (const auto& [name, root] : roots_) {
    to_visit.push_back(root.get());
    waiters_of_roots += root->waiters_below;
  }
  while (!to_visit.empty()) {
    const RadixNode* node = to_visit.back();
    to_visit.pop_back();
    for (const RadixNode& child : node->children) to_visit.push_back(&child);
    waiters += static_cast<int64_t>(node->waiters.size());
    if (node->parent == nullptr) continue;
    check_node(*node);
    ++nodes;
    pinned += node->pins > 0;
    windows += node->window_page >= 0;
    snapshots += node->snapshot >= 0;
  }
  CHECK(nodes == nodes_used_ && waiters == waiters_of_roots);
  CHECK(nodes == pinned + pages().cached);
  CHECK(nodes + pages().free <= pages().total);
  CHECK(windows + window_pages().free <= window_pages().total);
  CHECK(snapshots == slots().cached && snapshots + slots().free <= slots().total);
  for (const PageUses* uses : {&page_use_, &awaited_page_use_}) {
    std::unordered_set<const RadixNode*> earlier;
    for (const RadixNode& node : *uses) {
      CHECK((node.waiters_below > 0) == (uses == &awaited_page_use_));
      CHECK(!earlier.contains(node.parent), "a page would be evicted before what follows it");
      earlier.insert(&node);
    }
  }
  return {.pages = nodes, .window_pages = windows, .slots = snapshots};
}

}  // namespace banyan
