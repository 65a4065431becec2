#include "cache/tree_view.h"

#include <algorithm>
#include <deque>

#include "cache/radix_tree.h"

namespace banyan {
namespace {

// The start of a branch whose end is not known yet.
struct Fork {
  const RadixNode* node = nullptr;
  int64_t parent = -1;
  int name_space = 0;
  bool is_private = false;
};

// Appends the node to the branch.
void extend(TreeBranch& branch, const RadixNode& node, const StateClasses& classes,
            int64_t beginning_max) {
  branch.end = node.end;
  ++branch.pages;
  branch.hits += node.hits;
  branch.last_use = std::max(branch.last_use, node.last_use);
  auto has_snapshot = [&](int c) { return classes[c].snapshots() && node.units[c].unit >= 0; };
  for (int c = 0; c < classes.count; ++c) {
    if (!has_snapshot(c)) continue;
    branch.snapshots.push_back(node.end);
    break;
  }
  int64_t room = beginning_max - std::ssize(branch.beginning);
  auto count = std::clamp<int64_t>(room, 0, std::ssize(node.tokens));
  branch.beginning.insert(branch.beginning.end(), node.tokens.begin(), node.tokens.begin() + count);
}

}  // namespace

TreeView view(const RadixTree& tree, const TreeViewLimits& limits) {
  TreeView view{.branches = {}, .last_use = tree.last_use()};
  std::deque<Fork> forks;
  int name_space = 0;
  tree.for_each_root([&](const RadixNode& root) {
    const PrefixNamespace& name = *root.name_space;
    bool is_private = !name.salt.empty() || !name.extra_key.empty();
    for (const RadixNode& child : root.children) {
      forks.push_back({&child, -1, name_space, is_private});
    }
    ++name_space;
  });
  int64_t pages = 0;
  for (; !forks.empty(); forks.pop_front()) {
    if (std::ssize(view.branches) >= limits.branches_max || pages >= limits.pages_max) break;
    const Fork fork = forks.front();
    TreeBranch branch{.parent = fork.parent,
                      .name_space = fork.name_space,
                      .is_private = fork.is_private,
                      .begin = fork.node->begin(),
                      .sequences = fork.node->path().pins};
    const RadixNode* node = fork.node;
    extend(branch, *node, tree.classes(), limits.beginning_max);
    while (node->children.size() == 1 && pages + branch.pages < limits.pages_max) {
      node = &*node->children.begin();
      extend(branch, *node, tree.classes(), limits.beginning_max);
    }
    branch.id = node->path().unit;
    pages += branch.pages;
    for (const RadixNode& child : node->children) {
      forks.push_back({&child, branch.id, fork.name_space, fork.is_private});
    }
    view.branches.push_back(std::move(branch));
  }
  view.complete = forks.empty();
  return view;
}

}  // namespace banyan
