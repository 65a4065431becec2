// The radix tree: matching, leases, eviction, open pages and waiters; at last, random operations
// against a plain list of all prompts.
#include "cache/radix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "support/states.h"

namespace banyan::radix_tree_test {
namespace {

constexpr int kPage = 4;
const StateClasses kPlain = test::classes_of({}, kPage);
const StateClasses kRecurrent = test::classes_of({test::slot_state()}, kPage);
const StateClasses kWindow = test::classes_of({test::window_state(6)}, kPage);
constexpr int kSecond = 1;  // the slots, or the pages of the window

UnitSet page_alone(int32_t page) {
  UnitSet units;
  units[kPathClass] = page;
  return units;
}

int32_t take_page(RadixTree& tree) {
  return tree.take(kPathClass);
}

std::vector<TokenId> numbers(int first, int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

// Computes `tokens` as a sequence would: what is there is leased, the rest is published. Returns
// how much was there.
int64_t run(RadixTree& tree, RadixNode* root, const std::vector<TokenId>& tokens,
            const StateClasses& classes = kPlain) {
  PrefixMatch match = tree.match(root, std::span(tokens).first(tokens.size() - 1));
  Lease lease = tree.lease(match.node);
  auto units = [&] {
    UnitSet units;
    for (int c = 0; c < classes.count; ++c) {
      if (classes[c].paged()) units[c] = tree.take(c);
    }
    return units;
  };
  auto end = static_cast<int64_t>(tokens.size());
  int64_t first = match.node->end;
  for (; first + kPage <= end; first += kPage) {
    tree.publish(lease, std::span(tokens).subspan(static_cast<size_t>(first), kPage), units());
  }
  if (first < end && !classes.needs_snapshots()) {
    UnitSet rest = units();
    if (!tree.publish_open(lease, std::span(tokens).subspan(static_cast<size_t>(first)), rest)) {
      tree.give_back(rest);
    }
  }
  return match.position();
}

TEST(RadixTree, FindsWhatWasPublishedToTheToken) {
  RadixTree tree(kPlain, {20});
  RadixNode* root = tree.open({});
  EXPECT_EQ(run(tree, root, numbers(0, 10)), 0);
  EXPECT_EQ(run(tree, root, numbers(0, 10)), 9) << "never the last token";
  EXPECT_EQ(run(tree, root, numbers(0, 14)), 10) << "two pages and half of an open one";
  std::vector<TokenId> other = numbers(0, 7);
  other.push_back(99);
  other.push_back(99);
  EXPECT_EQ(run(tree, root, other), 7) << "the second page up to where it differs";
  tree.check();
  tree.close(root);
}

TEST(RadixTree, KeepsNamespacesApart) {
  RadixTree tree(kPlain, {20});
  RadixNode* a = tree.open({.salt = "x"});
  RadixNode* b = tree.open({.extra_key = "x"});
  ASSERT_NE(a, b);
  run(tree, a, numbers(0, 9));
  EXPECT_EQ(tree.match(b, numbers(0, 8)).position(), 0);
  EXPECT_NE(a->hash, b->hash);
  tree.close(a);
  tree.close(b);
  EXPECT_EQ(tree.match(tree.open({.salt = "x"}), numbers(0, 8)).position(), 8)
      << "a namespace outlives its requests";
}

TEST(RadixTree, EvictsLeavesThatWereUsedLongestAgo) {
  RadixTree tree(kPlain, {6});
  RadixNode* root = tree.open({});
  std::vector<TokenId> a = numbers(0, 9), b = numbers(100, 9), c = numbers(200, 9);
  run(tree, root, a);  // two pages and an open one
  run(tree, root, b);
  run(tree, root, a);  // used again
  run(tree, root, c);
  tree.check();
  EXPECT_EQ(tree.match(root, b).position(), 0);
  EXPECT_GE(tree.match(root, a).position(), 8);
  EXPECT_GE(tree.match(root, c).position(), 8);
  tree.flush();
  tree.check();
  EXPECT_EQ(tree.use(kPathClass).free, 6);
  tree.close(root);
}

TEST(RadixTree, NeverEvictsWhatIsLeased) {
  RadixTree tree(kPlain, {3});
  RadixNode* root = tree.open({});
  run(tree, root, numbers(0, 8));
  Lease lease = tree.lease(tree.match(root, numbers(0, 8)).node);
  EXPECT_EQ(lease.end(), 8);
  int32_t last = take_page(tree);
  EXPECT_GE(last, 0);
  EXPECT_EQ(take_page(tree), -1);
  tree.flush();
  EXPECT_EQ(tree.match(root, numbers(0, 8)).position(), 8);
  lease.release();
  EXPECT_GE(take_page(tree), 0) << "the deeper page";
  EXPECT_EQ(tree.match(root, numbers(0, 8)).position(), 4);
  tree.check();
}

TEST(RadixTree, GivesBackAPageThatSomebodyElseComputedFirst) {
  RadixTree tree(kPlain, {4});
  RadixNode* root = tree.open({});
  Lease first = tree.lease(root), second = tree.lease(root);
  int32_t a = take_page(tree), b = take_page(tree);
  EXPECT_EQ(tree.publish(first, numbers(0, kPage), page_alone(a))[kPathClass], a);
  EXPECT_EQ(tree.publish(second, numbers(0, kPage), page_alone(b))[kPathClass], a);
  EXPECT_EQ(tree.use(kPathClass).free, 3);
  EXPECT_EQ(second.node(), first.node());
  tree.check();
}

TEST(RadixTree, CompletesAnOpenPageInPlaceAndDropsWhatItCovers) {
  RadixTree tree(kPlain, {8});
  RadixNode* root = tree.open({});
  run(tree, root, numbers(0, 2));  // an open page of two tokens, left behind
  Lease lease = tree.lease(root);
  int32_t page = take_page(tree);
  EXPECT_TRUE(tree.publish_open(lease, numbers(0, 3), page_alone(page)));
  EXPECT_EQ(tree.use(kPathClass).free, 7) << "the page of two tokens went";
  EXPECT_EQ(tree.publish(lease, numbers(0, 4), page_alone(page))[kPathClass], page);
  EXPECT_EQ(lease.end(), 4);
  int32_t again = take_page(tree);
  Lease other = tree.lease(root);
  EXPECT_FALSE(tree.publish_open(other, numbers(0, 3), page_alone(again))) << "there already";
  tree.give_back(kPathClass, again);
  tree.check();
}

TEST(RadixTree, ResumesRecurrentStateAtSnapshotsOnly) {
  RadixTree tree(kRecurrent, {20, 2});
  RadixNode* root = tree.open({});
  run(tree, root, numbers(0, 12), kRecurrent);
  PrefixMatch match = tree.match(root, numbers(0, 12));
  EXPECT_EQ(match.position(), 0);
  EXPECT_EQ(match.deepest->end, 12);
  Lease lease = tree.lease(root);
  for (int first : {0, 4}) {
    tree.publish(lease, numbers(first, kPage), page_alone(take_page(tree)));
  }
  UnitSet snapshot;
  snapshot[kSecond] = tree.take(kSecond);
  tree.add_snapshots(lease.node(), snapshot);
  EXPECT_EQ(tree.match(root, numbers(0, 12)).position(), 8);
  EXPECT_EQ(tree.match(root, numbers(0, 7)).position(), 0);
  tree.check();
  lease.release();
  EXPECT_GE(tree.take(kSecond), 0);
  EXPECT_GE(tree.take(kSecond), 0) << "the snapshot's";
  EXPECT_EQ(tree.match(root, numbers(0, 12)).position(), 0);
}

TEST(RadixTree, ResumesWindowsWhereTheirReachIsResident) {
  RadixTree tree(kWindow, {20, 5});
  RadixNode* root = tree.open({});
  run(tree, root, numbers(0, 12), kWindow);
  EXPECT_EQ(tree.match(root, numbers(0, 12)).position(), 12);
  for (int i = 0; i < 3; ++i) EXPECT_GE(tree.take(kSecond), 0);
  EXPECT_EQ(tree.use(kSecond).cached, 2) << "the first page went";
  PrefixMatch match = tree.match(root, numbers(0, 12));
  EXPECT_EQ(match.position(), 12) << "the last five positions are in the other two";
  EXPECT_EQ(tree.match(root, numbers(0, 9)).position(), 0) << "position 8 would look at 3 and on";
  Lease lease = tree.lease(match.node);
  EXPECT_EQ(lease.begin(kSecond), 4);
  EXPECT_EQ(tree.take(kSecond), -1) << "pinned";
  tree.advance(lease, kSecond, 8);
  EXPECT_GE(tree.take(kSecond), 0);
  lease.release();
  tree.check();
}

TEST(RadixTree, TellsWaitersOfWhatTheyGainAndLose) {
  RadixTree tree(kPlain, {3});
  RadixNode* root = tree.open({});
  std::vector<TokenId> long_prompt = numbers(0, 11), other = numbers(50, 9);
  PrefixWaiter a, b;
  a.tokens = long_prompt;
  b.tokens = other;
  tree.attach(root, a);
  tree.attach(root, b);
  EXPECT_EQ(a.resumable, 0);
  EXPECT_EQ(tree.take_changed(), nullptr);
  run(tree, root, numbers(0, 12));
  EXPECT_EQ(tree.take_changed(), &a);
  EXPECT_EQ(tree.take_changed(), nullptr) << "the other hangs elsewhere";
  EXPECT_EQ(a.resumable, 8);
  PrefixWaiter late;
  late.tokens = long_prompt;
  tree.attach(root, late);
  EXPECT_EQ(late.resumable, 8);
  run(tree, root, numbers(50, 8));  // takes two pages from the others
  EXPECT_EQ(a.resumable, 4);
  EXPECT_EQ(b.resumable, 8);
  tree.check();
  for (PrefixWaiter* waiter : {&a, &b, &late}) tree.detach(*waiter);
  tree.check();
}

TEST(RadixTree, EvictsLastWhatAWaiterWillUse) {
  RadixTree tree(kPlain, {4});
  RadixNode* root = tree.open({});
  std::vector<TokenId> prompt = numbers(0, 9);
  PrefixWaiter waiter;
  waiter.tokens = prompt;
  run(tree, root, numbers(0, 8));
  tree.attach(root, waiter);
  run(tree, root, numbers(50, 8));
  run(tree, root, numbers(70, 8));  // takes the pages of the later one
  EXPECT_EQ(waiter.resumable, 8);
  EXPECT_EQ(tree.match(root, numbers(50, 8)).position(), 0);
  tree.check();
  run(tree, root, numbers(90, 12));  // needs more than those
  EXPECT_EQ(waiter.resumable, 4);
  tree.detach(waiter);
  tree.check();
}

// Waiters come and go while pages do, in a tree that is too small for all of them.
TEST(RadixTree, WaitersKnowWhatTheyWouldFind) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<int>(uniform(seed, draws++, 0) * end); };
    auto prompt = [&] {
      std::vector<TokenId> tokens;
      for (int pages = 1 + below(6); pages > 0; --pages) {
        tokens.insert(tokens.end(), kPage, below(2));
      }
      tokens.resize(tokens.size() - static_cast<size_t>(below(kPage)));
      return tokens;
    };
    RadixTree tree(kPlain, {10});
    RadixNode* root = tree.open({});
    std::vector<std::vector<TokenId>> prompts(12);
    std::vector<PrefixWaiter> waiters(prompts.size());
    for (int i = 0; i < 200; ++i) {
      auto w = static_cast<size_t>(below(static_cast<int>(waiters.size())));
      if (waiters[w].node != nullptr) {
        tree.detach(waiters[w]);
      } else {
        prompts[w] = prompt();
        waiters[w].tokens = prompts[w];
        tree.attach(root, waiters[w]);
      }
      run(tree, root, prompt());
      tree.check();
      for (const PrefixWaiter& waiter : waiters) {
        if (waiter.node == nullptr) continue;
        ASSERT_EQ(waiter.resumable, tree.match(root, waiter.tokens).node->end) << "seed " << seed;
      }
    }
    for (PrefixWaiter& waiter : waiters) {
      if (waiter.node != nullptr) tree.detach(waiter);
    }
  }
}

// Random prompts of a few letters against the obvious: the longest common beginning with anything
// that is still there. With room for everything, nothing is ever lost.
TEST(RadixTree, AgreesWithAListOfAllPrompts) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<int>(uniform(seed, draws++, 0) * end); };
    RadixTree tree(kPlain, {4000});
    RadixNode* root = tree.open({});
    std::vector<std::vector<TokenId>> seen;
    for (int i = 0; i < 60; ++i) {
      std::vector<TokenId> tokens;
      for (int length = 1 + below(20); length > 0; --length) tokens.push_back(below(2));
      int64_t expected = 0;
      for (const auto& other : seen) {
        auto end = tokens.end() - 1;
        expected = std::max<int64_t>(
            expected,
            std::mismatch(tokens.begin(), end, other.begin(), other.end()).first - tokens.begin());
      }
      ASSERT_EQ(run(tree, root, tokens), expected) << "seed " << seed << ", prompt " << i;
      tree.check();
      seen.push_back(tokens);
    }
    tree.close(root);
  }
}

}  // namespace
}  // namespace banyan::radix_tree_test
