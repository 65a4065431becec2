#include "cache/radix_tree.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

// Units to look at to find one that no tier is writing; more than are ever written at once.
constexpr int kLooksMax = 256;

}  // namespace

// ---- Leases ------------------------------------------------------------------------------------

Lease::Lease(Lease&& other) noexcept
    : tree_(std::exchange(other.tree_, nullptr)),
      node_(std::exchange(other.node_, nullptr)),
      begins_(std::exchange(other.begins_, {})) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  tree_ = std::exchange(other.tree_, nullptr);
  node_ = std::exchange(other.node_, nullptr);
  begins_ = std::exchange(other.begins_, {});
  return *this;
}

void Lease::release() {
  if (tree_ != nullptr) tree_->release(*this);
}

// Pages of the path enter the list deepest first: whatever the order of releases, a page was used
// no later than its parent. Pages of windows enter in the opposite order, since the last are of
// most use.
void RadixTree::release(Lease& lease) {
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].paged()) continue;
    auto before = units_of(c).use.end();
    int64_t begin = lease.begin(c);
    for (RadixNode* n = lease.node_; n->parent != nullptr && n->begin() >= begin; n = n->parent) {
      NodeUnit& unit = n->units[c];
      if (--unit.pins > 0 || unit.unit < 0) continue;
      if (c == kPathClass) {
        uses_of(c, *n).push_back(unit);
      } else {
        before = units_of(c).use.insert(before, unit);
      }
    }
  }
  lease.tree_ = nullptr;
  lease.node_ = nullptr;
  lease.begins_ = {};
}

void RadixTree::unlink(int unit_class, NodeUnit& unit) {
  if (!unit.use.is_linked()) return;
  UseList& uses = uses_of(unit_class, *unit.node);
  uses.erase(uses.iterator_to(unit));
}

void RadixTree::pin(Lease& lease, RadixNode* node) {
  for (int c = 0; c < classes_.count; ++c) {
    NodeUnit& unit = node->units[c];
    bool needed = classes_[c].paged() && node->begin() >= lease.begin(c);
    if (needed && unit.pins++ == 0) unlink(c, unit);
  }
}

Lease RadixTree::lease(RadixNode* node) {
  Lease lease;
  lease.tree_ = this;
  lease.node_ = node;
  int64_t page = classes_.page_size_tokens;
  for (int c = 0; c < classes_.count; ++c) {
    at(lease.begins_, c) = classes_[c].reach_begin(node->end) / page * page;
  }
  for (RadixNode* n = node; n->parent != nullptr; n = n->parent) pin(lease, n);
  node->last_use = ++leases_;
  ++node->hits;
  return lease;
}

void RadixTree::units(const Lease& lease, int unit_class, std::vector<int32_t>& units) const {
  int64_t page = classes_.page_size_tokens, begin = lease.begin(unit_class);
  units.assign(as_size((lease.end() + page - 1) / page), -1);
  const RadixNode* n = lease.node();
  for (; n != nullptr && n->parent != nullptr && n->begin() >= begin; n = n->parent) {
    int32_t unit = n->units[unit_class].unit;
    at(units, n->begin() / page) = unit < 0 ? blank(unit_class) : unit;
  }
}

UnitSet RadixTree::units(const RadixNode& node) const {
  UnitSet units;
  for (int c = 0; c < classes_.count; ++c) units[c] = node.units[c].unit;
  return units;
}

RadixNode* RadixTree::node_ending_at(const Lease& lease, int64_t position) {
  RadixNode* node = lease.node();
  while (node->end > position) node = node->parent;
  CHECK(node->end == position);
  return node;
}

void RadixTree::advance(Lease& lease, int unit_class, int64_t begin) {
  int64_t page = classes_.page_size_tokens;
  int64_t aligned = begin / page * page;
  int64_t& old = at(lease.begins_, unit_class);
  if (aligned <= old) return;
  for (RadixNode* n = lease.node_; n->parent != nullptr && n->begin() >= old; n = n->parent) {
    NodeUnit& unit = n->units[unit_class];
    if (n->begin() >= aligned) continue;
    if (--unit.pins == 0 && unit.unit >= 0) units_of(unit_class).use.push_back(unit);
  }
  old = aligned;
}

// ---- Units -------------------------------------------------------------------------------------

int64_t RadixTree::node_bytes(const StateClasses& classes) {
  return sizeof(RadixNode) + classes.count * sizeof(NodeUnit) +
         classes.page_size_tokens * sizeof(PrefixToken);
}

RadixTree::RadixTree(const StateClasses& classes, const UnitCounts& counts)
    : classes_(classes),
      node_memory_(as_size(counts[kPathClass]) *
                   (sizeof(RadixNode) + as_size(classes.count) * sizeof(NodeUnit))),
      token_memory_(as_size(counts[kPathClass] * classes.page_size_tokens) * sizeof(PrefixToken)) {
  units_.reserve(as_size(classes.count));
  for (int c = 0; c < classes.count; ++c) units_.emplace_back(at(counts, c));
}

int32_t RadixTree::take(int unit_class) {
  UnitList& list = units_of(unit_class).list;
  while (list.free_count() == 0) {  // an evicted unit may pass to the watcher
    if (!evict_one(unit_class)) return -1;
  }
  return list.take();
}

// The unit to evict next: the first of the list whose unit is free at once (a tier may be writing
// it), or else the first.
UseList::iterator RadixTree::oldest_unwritten(UseList& uses, int unit_class) {
  auto bit = uint8_t(1U << unsigned(unit_class));
  int looks = 0;
  for (auto it = uses.begin(); it != uses.end() && looks < kLooksMax; ++it, ++looks) {
    bool leaf = unit_class != kPathClass || it->node->children.empty();
    if (leaf && (it->node->writing & bit) == 0) return it;
  }
  return uses.begin();
}

bool RadixTree::evict_one(int unit_class) {
  if (unit_class == kPathClass) return evict_leaf();
  UseList& uses = units_of(unit_class).use;
  if (uses.empty()) return false;
  auto oldest = oldest_unwritten(uses, unit_class);
  drop_unit(unit_class, *oldest);
  return true;
}

void RadixTree::give_back(const UnitSet& units) {
  for (int c = 0; c < classes_.count; ++c) {
    if (units[c] >= 0) give_back(c, units[c]);
  }
}

int32_t RadixTree::blank(int unit_class) const {
  bool has_blank = classes_[unit_class].has_blank();
  return has_blank ? narrow<int32_t>(units_of(unit_class).list.total()) : -1;
}

RadixTree::Use RadixTree::use(int unit_class) const {
  const Units& units = units_of(unit_class);
  size_t cached = units.use.size() + (unit_class == kPathClass ? awaited_.size() : 0);
  return {units.list.free_count(), static_cast<int64_t>(cached), units.list.total()};
}

RadixNode* RadixTree::new_node() {
  ++nodes_used_;
  if (free_nodes_ != nullptr) {
    RadixNode* node = std::exchange(free_nodes_, free_nodes_->parent);
    node->parent = nullptr;
    node->last_use = leases_;
    return node;
  }
  // Each node holds a page of the path, so there are no more nodes than such pages.
  auto index = as_size(nodes_made_++);
  auto classes = as_size(classes_.count);
  size_t bytes = sizeof(RadixNode) + classes * sizeof(NodeUnit);
  CHECK((index + 1) * bytes <= node_memory_.size());
  std::byte* place = node_memory_.data() + index * bytes;
  auto* node = new (place) RadixNode;
  node->units = reinterpret_cast<NodeUnit*>(place + sizeof(RadixNode));
  for (size_t c = 0; c < classes; ++c) new (node->units + c) NodeUnit{.node = node};
  auto page = as_size(classes_.page_size_tokens);
  node->tokens = {reinterpret_cast<PrefixToken*>(token_memory_.data()) + index * page, 0};
  node->last_use = leases_;
  return node;
}

// The node is in no list, has no children, no waiters and no units.
void RadixTree::drop_node(RadixNode* node) {
  PrefixToken* tokens = node->tokens.data();
  NodeUnit* units = node->units;
  node->~RadixNode();
  new (node) RadixNode;
  node->tokens = {tokens, 0};
  node->units = units;
  node->parent = std::exchange(free_nodes_, node);
  --nodes_used_;
}

void RadixTree::drop_unit(int unit_class, NodeUnit& unit) {
  unlink(unit_class, unit);
  if (unit.unit < 0) return;
  bool kept = false;
  for (UnitWatcher* watcher : watchers_) {
    if (watcher != nullptr && watcher->loses(*unit.node, unit_class)) kept = true;
  }
  int32_t number = std::exchange(unit.unit, -1);
  if (!kept) give_back(unit_class, number);
}

void RadixTree::evict(RadixNode* leaf) {
  CHECK(leaf->children.empty() && leaf->path().pins == 0);
  RadixNode* parent = leaf->parent;
  for (int c = 0; c < classes_.count; ++c) drop_unit(c, leaf->units[c]);
  for (UnitWatcher* watcher : watchers_) {
    if (watcher != nullptr) watcher->goes(*leaf);
  }
  lift_waiters(leaf);
  parent->children.erase(parent->children.iterator_to(*leaf));
  drop_node(leaf);
  if (parent->parent == nullptr) drop_root_if_unused(parent);
}

// No awaited page is evicted while another is left, so the first of a list is a leaf.
bool RadixTree::evict_leaf() {
  UseList& path = units_of(kPathClass).use;
  UseList& uses = path.empty() ? awaited_ : path;
  if (uses.empty()) return false;
  evict(oldest_unwritten(uses, kPathClass)->node);
  return true;
}

void RadixTree::watch(UnitWatcher* watcher) {
  auto unused = std::ranges::find(watchers_, nullptr);
  CHECK(unused != watchers_.end());
  *unused = watcher;
}

void RadixTree::unwatch(UnitWatcher* watcher) {
  auto found = std::ranges::find(watchers_, watcher);
  CHECK(found != watchers_.end());
  *found = nullptr;
}

void RadixTree::tell_gained(RadixNode& node) {
  for (UnitWatcher* watcher : watchers_) {
    if (watcher != nullptr) watcher->gained(node);
  }
}

void RadixTree::flush() {
  bool everything = use(kPathClass).cached == nodes_used_ && nodes_used_ > 0;
  for (UnitWatcher* watcher : watchers_) {
    if (everything && watcher != nullptr) watcher->clears();
  }
  while (evict_leaf()) {
  }
}

// ---- Prefixes ----------------------------------------------------------------------------------

RadixNode* RadixTree::open(const PrefixNamespace& name_space) {
  auto [found, is_new] = roots_.try_emplace(name_space);
  if (is_new) {
    found->second = std::make_unique<Root>();
    RadixNode& node = found->second->node;
    node.units = found->second->units.data();
    node.hash = hash_namespace(name_space);
    node.name_space = &found->first;
  }
  RadixNode& root = found->second->node;
  ++root.path().pins;
  return &root;
}

void RadixTree::close(RadixNode* root) {
  CHECK(root->parent == nullptr && root->path().pins > 0);
  --root->path().pins;
  drop_root_if_unused(root);
}

void RadixTree::drop_root_if_unused(RadixNode* root) {
  if (root->path().pins > 0 || !root->children.empty()) return;
  roots_.erase(roots_.find(*root->name_space));
}

RadixNode* RadixTree::child_of(RadixNode* parent, std::span<const PrefixToken> page) const {
  auto found = parent->children.find(page, RadixNode::Order{});
  return found == parent->children.end() ? nullptr : &*found;
}

// `resident`: for each class of pages, the tokens before the node's end whose units are there
// without a gap.
bool RadixTree::resumable(const RadixNode& node, const UnitCounts& resident) const {
  for (int c = 0; c < classes_.count; ++c) {
    const UnitClass& unit_class = classes_[c];
    if (c == kPathClass || !unit_class.decides()) continue;
    bool there = unit_class.paged() ? node.end - at(resident, c) <= unit_class.reach_begin(node.end)
                                    : node.end == 0 || node.units[c].unit >= 0;
    if (!there) return false;
  }
  return true;
}

PrefixMatch RadixTree::match(RadixNode* root, std::span<const PrefixToken> tokens) const {
  int64_t page = classes_.page_size_tokens;
  auto limit = std::ssize(tokens);
  PrefixMatch match{.node = root};
  RadixNode* node = root;
  UnitCounts resident = {};
  while (node->end + page <= limit) {
    RadixNode* child = child_of(node, slice(tokens, node->end, page));
    if (child == nullptr) break;
    node = child;
    for (int c = 1; c < classes_.count; ++c) {
      int64_t& count = at(resident, c);
      count = node->units[c].unit >= 0 ? count + page : 0;
    }
    if (resumable(*node, resident)) match.node = node;
  }
  match.deepest = node;
  if (node == match.node && !classes_.needs_snapshots() && node->end < limit) {
    match_part(tokens.subspan(as_size(node->end)), match);
  }
  return match;
}

// The longest common beginning is with a neighbour of the position where the tokens would be
// inserted.
void RadixTree::match_part(std::span<const PrefixToken> rest, PrefixMatch& match) const {
  RadixNode& node = *match.node;
  auto consider = [&](RadixNode& child) {
    for (int c = 0; c < classes_.count; ++c) {
      if (classes_[c].paged() && classes_[c].decides() && child.units[c].unit < 0) return;
    }
    auto [end, unused] = std::ranges::mismatch(rest, child.tokens);
    if (end - rest.begin() <= match.partial_tokens) return;
    match.partial_tokens = end - rest.begin();
    match.partial = &child;
  };
  auto after = node.children.lower_bound(rest, RadixNode::Order{});
  if (after != node.children.end()) consider(*after);
  if (after != node.children.begin()) consider(*--after);
}

int64_t RadixTree::unpinned_pages(const RadixNode* node) const {
  int64_t count = 0;
  for (; node->parent != nullptr && node->path().pins == 0; node = node->parent) ++count;
  return count;
}

void RadixTree::set_tokens(RadixNode* node, std::span<const PrefixToken> tokens) {
  int64_t begin = node->begin();
  std::ranges::copy(tokens, node->tokens.data());
  node->tokens = {node->tokens.data(), tokens.size()};
  node->end = begin + std::ssize(tokens);
}

// The node's tokens are set and differ from those of any child of `parent`.
void RadixTree::insert(RadixNode* parent, RadixNode* node) {
  node->parent = parent;
  bool is_new = parent->children.insert(*node).second;
  CHECK(is_new);
  evict_covered_by(node);
  if (std::ssize(node->tokens) < classes_.page_size_tokens) return;
  node->hash = hash_page(parent->hash, node->tokens);
  wake(parent, node);
  tell_gained(*node);
}

// An abandoned open page that `node` begins with is no longer useful.
void RadixTree::evict_covered_by(RadixNode* node) {
  auto& siblings = node->parent->children;
  auto here = siblings.iterator_to(*node);
  if (here == siblings.begin()) return;
  RadixNode& before = *--here;
  bool covered = before.path().pins == 0 && before.tokens.size() < node->tokens.size() &&
                 std::ranges::equal(before.tokens, node->tokens.first(before.tokens.size()));
  if (covered) evict(&before);
}

void RadixTree::fill(RadixNode* node, const UnitSet& units) {
  bool gained = false;
  for (int c = 0; c < classes_.count; ++c) {
    if (units[c] < 0) continue;
    NodeUnit& unit = node->units[c];
    if (unit.unit >= 0) {
      give_back(c, units[c]);
      continue;
    }
    unit.unit = units[c];
    if (unit.pins == 0) units_of(c).use.push_back(unit);
    gained = true;
  }
  if (!gained) return;
  refresh_below(node);
  tell_gained(*node);
}

// Moves the lease to a node that holds the same states as `units`, which are given back or fill
// what the node lacks.
UnitSet RadixTree::extend_to(Lease& lease, RadixNode* existing, const UnitSet& units) {
  fill(existing, units);
  lease.node_ = existing;
  pin(lease, existing);
  UnitSet held;
  for (int c = 0; c < classes_.count; ++c) {
    bool needed = classes_[c].paged() && existing->begin() >= lease.begin(c);
    if (needed) held[c] = existing->units[c].unit;
  }
  return held;
}

// Takes the lease's open page out of the tree, so that it can be added again. Its units stay with
// the sequence.
void RadixTree::close_open_page(Lease& lease) {
  RadixNode* node = lease.node_;
  CHECK(node->path().pins == 1 && node->children.empty() && node->waiters.empty());
  node->parent->children.erase(node->parent->children.iterator_to(*node));
  lease.node_ = node->parent;
  for (int c = 0; c < classes_.count; ++c) {
    unlink(c, node->units[c]);
    node->units[c].unit = -1;
    node->units[c].pins = 0;
  }
  drop_node(node);
}

// The new node at the lease's end takes `units`; those that the lease needs are pinned.
void RadixTree::set_units(Lease& lease, RadixNode* node, UnitSet& units) {
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].paged()) continue;
    NodeUnit& unit = node->units[c];
    unit.unit = units[c];
    if (node->begin() >= lease.begin(c)) {
      unit.pins = 1;
    } else if (unit.unit >= 0) {
      units_of(c).use.push_back(unit);
      units[c] = -1;
    }
  }
}

UnitSet RadixTree::publish(Lease& lease, std::span<const PrefixToken> tokens,
                           const UnitSet& units) {
  CHECK(std::ssize(tokens) == classes_.page_size_tokens);
  bool open =
      lease.node_->parent != nullptr && std::ssize(lease.node_->tokens) < classes_.page_size_tokens;
  if (open) {
    CHECK(lease.node_->path().unit == units[kPathClass]);
    close_open_page(lease);
  }
  if (RadixNode* existing = child_of(lease.node_, tokens)) {
    return extend_to(lease, existing, units);
  }
  RadixNode* node = new_node();
  node->end = lease.node_->end;
  set_tokens(node, tokens);
  RadixNode* parent = std::exchange(lease.node_, node);
  UnitSet held = units;
  set_units(lease, node, held);
  insert(parent, node);
  return held;
}

bool RadixTree::publish_open(Lease& lease, std::span<const PrefixToken> tokens,
                             const UnitSet& units) {
  CHECK(!tokens.empty() && std::ssize(tokens) < classes_.page_size_tokens);
  bool open = lease.node_->parent != nullptr && lease.node_->path().unit == units[kPathClass];
  if (open) close_open_page(lease);
  RadixNode* parent = lease.node_;
  auto after = parent->children.lower_bound(tokens, RadixNode::Order{});
  if (after != parent->children.end() && after->tokens.size() >= tokens.size() &&
      std::ranges::equal(tokens, after->tokens.first(tokens.size()))) {
    return false;
  }
  RadixNode* node = new_node();
  node->end = parent->end;
  set_tokens(node, tokens);
  lease.node_ = node;
  UnitSet held = units;
  set_units(lease, node, held);
  CHECK(held == units, "an open page before its window");
  insert(parent, node);
  return true;
}

void RadixTree::add_snapshots(RadixNode* node, const UnitSet& slots) {
  touch_snapshots(node);
  bool gained = false;
  for (int c = 0; c < classes_.count; ++c) {
    if (slots[c] < 0) continue;
    NodeUnit& unit = node->units[c];
    if (unit.unit >= 0) {
      give_back(c, slots[c]);
      continue;
    }
    unit.unit = slots[c];
    units_of(c).use.push_back(unit);
    gained = true;
  }
  if (!gained) return;
  refresh_below(node);
  tell_gained(*node);
}

void RadixTree::drop_snapshots(RadixNode* node) {
  for (int c = 0; c < classes_.count; ++c) {
    if (classes_[c].snapshots()) drop_unit(c, node->units[c]);
  }
}

void RadixTree::touch_snapshots(RadixNode* node) {
  for (int c = 0; c < classes_.count; ++c) {
    if (!classes_[c].snapshots() || node->units[c].unit < 0) continue;
    UseList& uses = units_of(c).use;
    uses.splice(uses.end(), uses, uses.iterator_to(node->units[c]));
  }
}

}  // namespace banyan
