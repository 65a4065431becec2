// Snapshots of the radix tree for display: branches, namespaces, limits.
#include "cache/tree_view.h"

#include <gtest/gtest.h>

#include <vector>

#include "cache/radix_tree.h"
#include "support/states.h"

namespace banyan::tree_view_test {
namespace {

constexpr int kPage = 4;
const StateClasses kClasses = test::classes_of({test::slot_state()}, kPage);
constexpr int kSlots = 1;

class TreeViewTest : public testing::Test {
 protected:
  RadixTree tree{kClasses, {20, 20}};
  RadixNode* root = tree.open({});

  ~TreeViewTest() override { tree.close(root); }

  // Publishes what is not there of whole pages, as a sequence would, with a snapshot at the end.
  Lease run(RadixNode* from, const std::vector<TokenId>& tokens) {
    Lease lease = tree.lease(tree.match(from, tokens).node);
    for (int64_t at = lease.end(); at + kPage <= std::ssize(tokens); at += kPage) {
      UnitSet units;
      units[kPathClass] = tree.take(kPathClass);
      tree.publish(lease, std::span(tokens).subspan(static_cast<size_t>(at), kPage), units);
    }
    UnitSet slot;
    slot[kSlots] = tree.take(kSlots);
    tree.add_snapshots(lease.node(), slot);
    return lease;
  }
};

TEST_F(TreeViewTest, ABranchGoesToTheNextFork) {
  run(root, {1, 1, 1, 1, 2, 2, 2, 2});
  run(root, {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4});  // resumes after the twos
  Lease running = run(root, {1, 1, 1, 1, 2, 2, 2, 2, 5, 5, 5, 5});
  TreeView seen = view(tree, {.beginning_max = 6});
  ASSERT_EQ(seen.branches.size(), 3u);
  EXPECT_TRUE(seen.complete);
  EXPECT_EQ(seen.last_use, 3);
  const TreeBranch& trunk = seen.branches[0];
  EXPECT_EQ(trunk.parent, -1);
  EXPECT_EQ(trunk.begin, 0);
  EXPECT_EQ(trunk.end, 8);
  EXPECT_EQ(trunk.pages, 2);
  EXPECT_EQ(trunk.snapshots, std::vector<int64_t>{8});
  EXPECT_EQ(trunk.sequences, 1);
  EXPECT_EQ(trunk.hits, 2) << "the first run found nothing";
  EXPECT_EQ(trunk.last_use, 3);
  EXPECT_EQ(trunk.beginning, (std::vector<TokenId>{1, 1, 1, 1, 2, 2}));
  for (const TreeBranch& branch : {seen.branches[1], seen.branches[2]}) {
    EXPECT_EQ(branch.parent, trunk.id);
    EXPECT_EQ(branch.begin, 8);
    bool is_long = branch.end == 16;
    EXPECT_EQ(branch.pages, is_long ? 2 : 1);
    EXPECT_EQ(branch.sequences, is_long ? 0 : 1);
    EXPECT_EQ(branch.last_use, is_long ? 2 : 3);
    EXPECT_EQ(branch.hits, 0);
  }
}

TEST_F(TreeViewTest, TellsNamespacesApart) {
  RadixNode* salted = tree.open({.salt = "x"});
  run(root, {1, 1, 1, 1});
  run(salted, {1, 1, 1, 1});
  TreeView seen = view(tree, {});
  ASSERT_EQ(seen.branches.size(), 2u);
  EXPECT_NE(seen.branches[0].name_space, seen.branches[1].name_space);
  EXPECT_NE(seen.branches[0].is_private, seen.branches[1].is_private);
  tree.close(salted);
}

TEST_F(TreeViewTest, LeavesOutTheDeepestBeyondItsLimits) {
  run(root, {1, 1, 1, 1, 2, 2, 2, 2});
  run(root, {1, 1, 1, 1, 3, 3, 3, 3});
  TreeView one = view(tree, {.branches_max = 1});
  EXPECT_FALSE(one.complete);
  ASSERT_EQ(one.branches.size(), 1u);
  EXPECT_EQ(one.branches[0].end, 4);
  EXPECT_FALSE(view(tree, {.pages_max = 1}).complete);
  EXPECT_TRUE(view(tree, {.branches_max = 3}).complete);
  tree.flush();
  EXPECT_TRUE(view(tree, {}).branches.empty());
}

}  // namespace
}  // namespace banyan::tree_view_test
