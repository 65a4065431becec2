#include "cache/radix_tree.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace banyan {

// ---- Leases ------------------------------------------------------------------------------------

Lease::Lease(Lease&& other) noexcept
    : tree_(std::exchange(other.tree_, nullptr)),
      node_(std::exchange(other.node_, nullptr)),
      window_begin_(std::exchange(other.window_begin_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  tree_ = std::exchange(other.tree_, nullptr);
  node_ = std::exchange(other.node_, nullptr);
  window_begin_ = std::exchange(other.window_begin_, 0);
  return *this;
}

void Lease::release() {
  if (tree_ != nullptr) tree_->release(*this);
}

// Pages go into the list deepest first: whatever the order of releases, a page was used no later
// than the one before it. Window pages the other way round, since the last are of most use.
void RadixTree::release(Lease& lease) {
  auto before = window_use_.end();
  for (RadixNode* node = lease.node_; node->parent != nullptr; node = node->parent) {
    if (node->begin() >= lease.window_begin_ && node->window_page >= 0 &&
        --node->window_pins == 0) {
      before = window_use_.insert(before, *node);
    }
    if (--node->pins == 0) page_uses(*node).push_back(*node);
  }
  lease.tree_ = nullptr;
  lease.node_ = nullptr;
  lease.window_begin_ = 0;
}

void RadixTree::pin(Lease& lease, RadixNode* node) {
  if (node->pins++ == 0 && node->page_use.is_linked()) {
    page_uses(*node).erase(page_uses(*node).iterator_to(*node));
  }
  if (node->begin() < lease.window_begin_ || node->window_page < 0) return;
  if (node->window_pins++ == 0 && node->window_use.is_linked()) {
    window_use_.erase(window_use_.iterator_to(*node));
  }
}

Lease RadixTree::lease(RadixNode* node) {
  Lease lease;
  lease.tree_ = this;
  lease.node_ = node;
  int64_t page = classes_.page_size_tokens;
  lease.window_begin_ = reach_begin(node->end) / page * page;
  for (RadixNode* n = node; n->parent != nullptr; n = n->parent) pin(lease, n);
  return lease;
}

void RadixTree::units(const Lease& lease, std::vector<int32_t>& pages,
                      std::vector<int32_t>& window_pages) const {
  int64_t page = classes_.page_size_tokens;
  auto count = static_cast<size_t>((lease.end() + page - 1) / page);
  pages.assign(count, -1);
  window_pages.assign(count, -1);
  for (const RadixNode* n = lease.node(); n != nullptr && n->parent != nullptr; n = n->parent) {
    auto i = static_cast<size_t>(n->begin() / page);
    pages[i] = n->page;
    if (n->begin() >= lease.window_begin()) window_pages[i] = n->window_page;
  }
}

RadixNode* RadixTree::node_ending_at(const Lease& lease, int64_t position) {
  RadixNode* node = lease.node();
  while (node->end > position) node = node->parent;
  CHECK(node->end == position);
  return node;
}

void RadixTree::advance_window(Lease& lease, int64_t begin) {
  int64_t page = classes_.page_size_tokens;
  int64_t aligned = begin / page * page;
  if (aligned <= lease.window_begin_) return;
  for (RadixNode* n = lease.node_; n->parent != nullptr && n->begin() >= lease.window_begin_;
       n = n->parent) {
    if (n->begin() >= aligned || n->window_page < 0) continue;
    if (--n->window_pins == 0) window_use_.push_back(*n);
  }
  lease.window_begin_ = aligned;
}

// ---- Units -------------------------------------------------------------------------------------

RadixTree::RadixTree(const StateClasses& classes, const PoolSizes& counts)
    : classes_(classes),
      pages_(counts.pages),
      window_pages_(counts.window_pages),
      slots_(counts.slots),
      node_memory_(static_cast<size_t>(counts.pages) * sizeof(RadixNode)),
      token_memory_(static_cast<size_t>(counts.pages * classes.page_size_tokens) *
                    sizeof(PrefixToken)) {}

int32_t RadixTree::take_page() {
  if (pages_.free_count() == 0) {
    if (!evict_page()) return -1;
  }
  return pages_.take();
}

int32_t RadixTree::take_window_page() {
  if (window_pages_.free_count() == 0) {
    if (window_use_.empty()) return -1;
    RadixNode& node = window_use_.front();
    window_use_.pop_front();
    give_back_window_page(std::exchange(node.window_page, -1));
  }
  return window_pages_.take();
}

int32_t RadixTree::take_slot() {
  if (slots_.free_count() == 0) {
    if (snapshot_use_.empty()) return -1;
    RadixNode& node = snapshot_use_.front();
    snapshot_use_.pop_front();
    give_back_slot(std::exchange(node.snapshot, -1));
  }
  return slots_.take();
}

RadixTree::Use RadixTree::pages() const {
  return {pages_.free_count(), static_cast<int64_t>(page_use_.size() + awaited_page_use_.size()),
          pages_.total()};
}

RadixTree::Use RadixTree::window_pages() const {
  return {window_pages_.free_count(), static_cast<int64_t>(window_use_.size()),
          window_pages_.total()};
}

RadixTree::Use RadixTree::slots() const {
  return {slots_.free_count(), static_cast<int64_t>(snapshot_use_.size()), slots_.total()};
}

RadixNode* RadixTree::new_node() {
  ++nodes_used_;
  if (free_nodes_ != nullptr) {
    RadixNode* node = std::exchange(free_nodes_, free_nodes_->parent);
    node->parent = nullptr;
    return node;
  }
  // A node holds a page, so there are no more nodes than pages.
  auto index = static_cast<size_t>(nodes_made_++);
  CHECK((index + 1) * sizeof(RadixNode) <= node_memory_.size());
  auto* node = new (node_memory_.data() + index * sizeof(RadixNode)) RadixNode;
  auto page = static_cast<size_t>(classes_.page_size_tokens);
  node->tokens = {reinterpret_cast<PrefixToken*>(token_memory_.data()) + index * page, 0};
  return node;
}

// The node is in no list, has no children, no waiters and no units.
void RadixTree::drop_node(RadixNode* node) {
  PrefixToken* tokens = node->tokens.data();
  node->~RadixNode();
  new (node) RadixNode;
  node->tokens = {tokens, 0};
  node->parent = std::exchange(free_nodes_, node);
  --nodes_used_;
}

void RadixTree::free_units(RadixNode& node) {
  if (node.page_use.is_linked()) page_uses(node).erase(page_uses(node).iterator_to(node));
  if (node.window_use.is_linked()) window_use_.erase(window_use_.iterator_to(node));
  if (node.snapshot_use.is_linked()) snapshot_use_.erase(snapshot_use_.iterator_to(node));
  give_back_page(std::exchange(node.page, -1));
  if (node.window_page >= 0) give_back_window_page(std::exchange(node.window_page, -1));
  if (node.snapshot >= 0) give_back_slot(std::exchange(node.snapshot, -1));
}

void RadixTree::evict(RadixNode* leaf) {
  CHECK(leaf->children.empty() && leaf->pins == 0);
  RadixNode* parent = leaf->parent;
  free_units(*leaf);
  lift_waiters(leaf);
  parent->children.erase(parent->children.iterator_to(*leaf));
  drop_node(leaf);
  if (parent->parent == nullptr) drop_root_if_unused(parent);
}

// While a page that is not awaited is left, no awaited one is evicted, so that the first of a list
// is a leaf.
bool RadixTree::evict_page() {
  PageUses& uses = page_use_.empty() ? awaited_page_use_ : page_use_;
  if (uses.empty()) return false;
  evict(&uses.front());
  return true;
}

void RadixTree::flush() {
  while (evict_page()) {
  }
}

// ---- Prefixes ----------------------------------------------------------------------------------

RadixNode* RadixTree::open(const PrefixNamespace& name_space) {
  auto [found, is_new] = roots_.try_emplace(name_space);
  if (is_new) {
    found->second = std::make_unique<RadixNode>();
    found->second->hash = hash_namespace(name_space);
    found->second->name_space = &found->first;
  }
  ++found->second->pins;
  return found->second.get();
}

void RadixTree::close(RadixNode* root) {
  CHECK(root->parent == nullptr && root->pins > 0);
  --root->pins;
  drop_root_if_unused(root);
}

void RadixTree::drop_root_if_unused(RadixNode* root) {
  if (root->pins > 0 || !root->children.empty()) return;
  roots_.erase(roots_.find(*root->name_space));
}

RadixNode* RadixTree::child_of(RadixNode* parent, std::span<const PrefixToken> page) const {
  auto found = parent->children.find(page, RadixNode::Order{});
  return found == parent->children.end() ? nullptr : &*found;
}

// The first position whose window keys a token at `position` still looks at.
int64_t RadixTree::reach_begin(int64_t position) const {
  if (classes_.window_tokens == 0) return position;
  return std::max<int64_t>(0, position - (classes_.window_tokens - 1));
}

bool RadixTree::resumable(const RadixNode& node, int64_t window_resident) const {
  if (node.end - window_resident > reach_begin(node.end)) return false;
  return !classes_.recurrent || node.end == 0 || node.snapshot >= 0;
}

PrefixMatch RadixTree::match(RadixNode* root, std::span<const PrefixToken> tokens) const {
  int64_t page = classes_.page_size_tokens;
  auto limit = static_cast<int64_t>(tokens.size());
  PrefixMatch match{.node = root};
  RadixNode* node = root;
  int64_t window_resident = 0;  // tokens before the node's end whose window pages are there
  while (node->end + page <= limit) {
    RadixNode* child =
        child_of(node, tokens.subspan(static_cast<size_t>(node->end), static_cast<size_t>(page)));
    if (child == nullptr) break;
    node = child;
    window_resident = node->window_page >= 0 ? window_resident + page : 0;
    if (resumable(*node, window_resident)) match.node = node;
  }
  match.deepest = node;
  match.snapshot = match.node->snapshot;
  if (node != match.node || classes_.recurrent || node->end == limit) return match;

  // The longest common beginning is with a neighbour of where the rest would stand.
  std::span<const PrefixToken> rest = tokens.subspan(static_cast<size_t>(node->end));
  auto consider = [&](RadixNode& child) {
    if (classes_.window_tokens > 0 && child.window_page < 0) return;
    auto [end, unused] = std::ranges::mismatch(rest, child.tokens);
    if (end - rest.begin() <= match.partial_tokens) return;
    match.partial_tokens = end - rest.begin();
    match.partial = &child;
  };
  auto after = node->children.lower_bound(rest, RadixNode::Order{});
  if (after != node->children.end()) consider(*after);
  if (after != node->children.begin()) consider(*--after);
  return match;
}

int64_t RadixTree::unpinned_pages(const RadixNode* node) const {
  int64_t count = 0;
  for (; node->parent != nullptr && node->pins == 0; node = node->parent) ++count;
  return count;
}

void RadixTree::set_tokens(RadixNode* node, std::span<const PrefixToken> tokens) {
  int64_t begin = node->begin();
  std::ranges::copy(tokens, node->tokens.data());
  node->tokens = {node->tokens.data(), tokens.size()};
  node->end = begin + static_cast<int64_t>(tokens.size());
}

// The node's tokens are set and unlike those of any child of `parent`.
void RadixTree::insert(RadixNode* parent, RadixNode* node) {
  node->parent = parent;
  bool is_new = parent->children.insert(*node).second;
  CHECK(is_new);
  evict_covered_by(node);
  if (static_cast<int64_t>(node->tokens.size()) < classes_.page_size_tokens) return;
  node->hash = hash_page(parent->hash, node->tokens);
  wake(parent, node);
}

// An open page that somebody left, and that `node` begins with, is of no more use.
void RadixTree::evict_covered_by(RadixNode* node) {
  auto& siblings = node->parent->children;
  auto here = siblings.iterator_to(*node);
  if (here == siblings.begin()) return;
  RadixNode& before = *--here;
  bool covered = before.pins == 0 && before.tokens.size() < node->tokens.size() &&
                 std::ranges::equal(before.tokens, node->tokens.first(before.tokens.size()));
  if (covered) evict(&before);
}

// The lease goes on to a node that holds the same states as `units`, which are given back.
PageUnits RadixTree::extend_to(Lease& lease, RadixNode* existing, PageUnits units) {
  give_back_page(units.page);
  if (units.window_page >= 0) {
    if (existing->window_page < 0) {
      existing->window_page = units.window_page;
      window_use_.push_back(*existing);
      refresh_below(existing);
    } else {
      give_back_window_page(units.window_page);
    }
  }
  lease.node_ = existing;
  pin(lease, existing);
  bool needs_window = existing->begin() >= lease.window_begin_;
  return {existing->page, needs_window ? existing->window_page : -1};
}

// Takes the lease's open page out of the tree, units and all, so that it can be added anew.
void RadixTree::close_open_page(Lease& lease) {
  RadixNode* node = lease.node_;
  CHECK(node->pins == 1 && node->children.empty() && node->waiters.empty());
  node->parent->children.erase(node->parent->children.iterator_to(*node));
  lease.node_ = node->parent;
  node->page = node->window_page = -1;
  drop_node(node);
}

PageUnits RadixTree::publish(Lease& lease, std::span<const PrefixToken> tokens, PageUnits units) {
  CHECK(static_cast<int64_t>(tokens.size()) == classes_.page_size_tokens);
  bool open = lease.node_->parent != nullptr &&
              static_cast<int64_t>(lease.node_->tokens.size()) < classes_.page_size_tokens;
  if (open) {
    CHECK(lease.node_->page == units.page);
    close_open_page(lease);
  }
  if (RadixNode* existing = child_of(lease.node_, tokens)) {
    return extend_to(lease, existing, units);
  }
  RadixNode* node = new_node();
  node->end = lease.node_->end;
  set_tokens(node, tokens);
  node->page = units.page;
  node->window_page = units.window_page;
  node->pins = 1;
  RadixNode* parent = std::exchange(lease.node_, node);
  bool needs_window = node->begin() >= lease.window_begin_;
  if (node->window_page >= 0 && needs_window) node->window_pins = 1;
  if (node->window_page >= 0 && !needs_window) window_use_.push_back(*node);
  insert(parent, node);
  return {node->page, needs_window ? node->window_page : -1};
}

bool RadixTree::publish_open(Lease& lease, std::span<const PrefixToken> tokens, PageUnits units) {
  CHECK(!tokens.empty() && static_cast<int64_t>(tokens.size()) < classes_.page_size_tokens);
  bool open = lease.node_->parent != nullptr && lease.node_->page == units.page;
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
  node->page = units.page;
  node->window_page = units.window_page;
  node->pins = 1;
  if (node->window_page >= 0) node->window_pins = 1;
  lease.node_ = node;
  insert(parent, node);
  return true;
}

void RadixTree::add_snapshot(RadixNode* node, int32_t slot) {
  if (node->snapshot >= 0) {
    give_back_slot(slot);
    return touch_snapshot(node);
  }
  node->snapshot = slot;
  snapshot_use_.push_back(*node);
  refresh_below(node);
}

void RadixTree::drop_snapshot(RadixNode* node) {
  if (node->snapshot < 0) return;
  snapshot_use_.erase(snapshot_use_.iterator_to(*node));
  give_back_slot(std::exchange(node->snapshot, -1));
}

void RadixTree::touch_snapshot(RadixNode* node) {
  if (node->snapshot < 0) return;
  snapshot_use_.splice(snapshot_use_.end(), snapshot_use_, snapshot_use_.iterator_to(*node));
}

}  // namespace banyan
