// The router's map of prefixes, against the rule of the workers' own radix tree.
#include "router/meta_tree.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"

namespace banyan::meta_tree_test {
namespace {

constexpr int kPage = 4;

PageKey key_of(int chain, int page) {
  PageKeys keys;
  std::array<PrefixToken, 2> tokens = {chain, page};
  return keys.page({}, tokens);
}

std::vector<PageKey> prompt_of(int chain, int pages) {
  std::vector<PageKey> prompt;
  for (int page = 0; page < pages; ++page) prompt.push_back(key_of(chain, page));
  return prompt;
}

StateClasses pages_alone() {
  return {.page_size_tokens = kPage};
}

// Pages, those of a window of three pages, snapshots, and advisory ones that never matter.
StateClasses all_kinds() {
  return {.page_size_tokens = kPage,
          .classes = {UnitClass{},
                      {.reach = StateReach::kWindow, .window_tokens = 3 * kPage},
                      {.unit = StateUnit::kSlot, .reach = StateReach::kPoint},
                      {.unit = StateUnit::kSlot, .reach = StateReach::kPoint, .advisory = true}},
          .count = 4};
}

int64_t depth_of(std::span<const PrefixHolder> holders, int slot) {
  for (const PrefixHolder& holder : holders) {
    if (holder.slot == slot) return holder.pages;
  }
  return 0;
}

TEST(MetaTree, FindsWhoHasMost) {
  MetaTree tree({.classes = pages_alone()});
  std::vector<PageKey> prompt = prompt_of(0, 6);
  std::vector<int> slots;
  for (size_t pages : {2U, 6U, 4U, 0U}) {
    slots.push_back(tree.open());
    for (size_t i = 0; i < pages; ++i) tree.stored(slots.back(), {.page = prompt[i]});
  }
  std::span<const PrefixHolder> holders = tree.match(prompt);
  ASSERT_EQ(holders.size(), 3U);
  EXPECT_EQ(holders[0].slot, slots[1]);
  EXPECT_EQ(holders[1].pages, 4);
  EXPECT_EQ(holders[2].slot, slots[0]);
  EXPECT_EQ(tree.held(slots[1]), 6);
  tree.removed(slots[1], {.page = prompt[1]});
  EXPECT_EQ(depth_of(tree.match(prompt), slots[1]), 1) << "what follows a gap is of no use";
  tree.close(slots[2]);
  EXPECT_EQ(depth_of(tree.match(prompt), slots[2]), 0);
  EXPECT_EQ(depth_of(tree.match(prompt), slots[0]), 2);
}

TEST(MetaTree, WhatIsBelowMemoryCountsApart) {
  MetaTree tree({.classes = pages_alone()});
  std::vector<PageKey> prompt = prompt_of(0, 5);
  int slot = tree.open();
  for (int i = 0; i < 5; ++i) {
    tree.stored(slot, {.page = prompt[static_cast<size_t>(i)],
                       .tier = i < 2 ? KvTier::kMemory : KvTier::kStorage});
  }
  std::span<const PrefixHolder> holders = tree.match(prompt);
  ASSERT_EQ(holders.size(), 1U);
  EXPECT_EQ(holders[0].pages, 5);
  EXPECT_EQ(holders[0].memory_pages, 2);
}

TEST(MetaTree, PredictionsEnd) {
  MetaTree tree({.classes = all_kinds()});
  std::vector<PageKey> prompt = prompt_of(0, 5);
  int slot = tree.open();
  tree.predict(slot, prompt);
  EXPECT_EQ(depth_of(tree.match(prompt), slot), 5);
  EXPECT_EQ(depth_of(tree.match(prompt_of(0, 3)), slot), 0) << "the snapshot is at the end";
  EXPECT_FALSE(tree.holds(slot, {.page = prompt[0]}));
  tree.stored(slot, {.page = prompt[0]});
  tree.unpredict(slot, prompt);
  EXPECT_EQ(tree.entries(), 1);
  EXPECT_TRUE(tree.holds(slot, {.page = prompt[0]}));
}

TEST(MetaTree, StaysWithinItsBound) {
  MetaTree tree({.classes = pages_alone(), .entries_max = 2048});
  int slot = tree.open();
  for (int i = 0; i < 5000; ++i) tree.stored(slot, {.page = key_of(i, 0)});
  EXPECT_LE(tree.entries(), 2048);
  EXPECT_GT(tree.entries(), 1500);
  EXPECT_EQ(tree.entries() + tree.evicted(), 5000);
  EXPECT_EQ(tree.held(slot), tree.entries());
  for (int i = 0; i < 5000; ++i) tree.removed(slot, {.page = key_of(i, 0)});
  EXPECT_EQ(tree.entries(), 0);
  EXPECT_EQ(tree.held(slot), 0);
}

// What holders are expected to be, by the rule as cache/radix_tree.h words it.
class Model {
 public:
  explicit Model(const StateClasses& classes) : classes_(classes) {}

  std::map<int, std::set<std::pair<PageKey, int>>> units;  // of each slot

  int64_t depth(int slot, std::span<const PageKey> prompt) const {
    auto found = units.find(slot);
    int64_t best = 0;
    for (size_t i = 0; found != units.end() && i < prompt.size(); ++i) {
      if (!found->second.contains({prompt[i], kPathClass})) break;
      if (resumable(found->second, prompt, i)) best = static_cast<int64_t>(i) + 1;
    }
    return best;
  }

 private:
  bool resumable(const std::set<std::pair<PageKey, int>>& held, std::span<const PageKey> prompt,
                 size_t page) const {
    int64_t end = static_cast<int64_t>(page + 1) * kPage;
    for (int c = 1; c < classes_.count; ++c) {
      if (!classes_[c].decides()) continue;
      for (size_t i = 0; i <= page; ++i) {
        bool needed = classes_[c].paged()
                          ? static_cast<int64_t>(i + 1) * kPage > classes_[c].reach_begin(end)
                          : i == page;
        if (needed && !held.contains({prompt[i], c})) return false;
      }
    }
    return true;
  }
  StateClasses classes_;
};

TEST(MetaTree, FollowsTheRuleOfTheTree) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    StateClasses classes = seed % 2 == 0 ? all_kinds() : pages_alone();
    MetaTree tree({.classes = classes, .slots_max = 70});
    Model model(classes);
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<int>(uniform(seed, draws++, 0) * end); };
    std::vector<int> slots;
    for (int i = 0; i < 6; ++i) slots.push_back(tree.open());
    for (int step = 0; step < 6000; ++step) {
      int& slot = slots[static_cast<size_t>(below(6))];
      if (below(500) == 0) {
        tree.close(slot);
        model.units.erase(slot);
        slot = tree.open();
        ASSERT_GE(slot, 0);
        ASSERT_FALSE(model.units.contains(slot));
      }
      KvUnit unit{.page = key_of(below(3), below(10)),
                  .unit_class = static_cast<uint8_t>(below(classes.count))};
      if (below(4) > 0) {
        tree.stored(slot, unit);
        model.units[slot].insert({unit.page, unit.unit_class});
      } else {
        tree.removed(slot, unit);
        model.units[slot].erase({unit.page, unit.unit_class});
      }
      if (below(3) == 0) tree.sweep();
      if (below(10) > 0) continue;
      std::vector<PageKey> prompt = prompt_of(below(3), 10);
      std::span<const PrefixHolder> holders = tree.match(prompt);
      ASSERT_TRUE(std::ranges::is_sorted(holders, std::greater<>{}, &PrefixHolder::pages));
      for (int s : slots) ASSERT_EQ(depth_of(holders, s), model.depth(s, prompt));
    }
    while (tree.sweep()) continue;
    std::set<PageKey> pages;
    for (const auto& [slot, units] : model.units) {
      for (const auto& [page, unit_class] : units) pages.insert(page);
    }
    EXPECT_EQ(tree.entries(), std::ssize(pages));
  }
}

}  // namespace
}  // namespace banyan::meta_tree_test
