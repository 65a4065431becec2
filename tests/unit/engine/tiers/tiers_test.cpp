// What is loaded from a store, which sequences wait, and what is written when.
#include "engine/tiers/tiers.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/tier/tier_machine.h"

namespace banyan::tiers_test {
namespace {

using test::FakeDisk;
using test::live_once;
using test::TierMachine;
using test::TierShape;
using test::tokens_from;

TEST(Tiers, ResumeAfterARestart) {
  for (const char* writes : {"write_through", "write_back"}) {
    for (bool recurrent : {false, true}) {
      TierShape shape{.recurrent = recurrent, .writes = writes, .delay = 3};
      live_once(shape, {tokens_from(0, 42)});
      TierMachine machine(shape);
      machine.enqueue(1, tokens_from(0, 42));
      machine.run();
      EXPECT_EQ(machine.computed, 2) << writes << recurrent;
      EXPECT_EQ(machine.stats().restored_tokens, 40);
      EXPECT_EQ(machine.check_prefix(tokens_from(0, 42)), 40);
      EXPECT_EQ(machine.store().reads, recurrent ? 11 : 10);
      EXPECT_EQ(machine.scheduler().cached_tokens(), 40);
    }
  }
}

// Section 2 of what identifies a state: engine/startup/state_identity.h says what is in the digest.
TEST(Tiers, FindNothingOfAnotherModelOrNamespace) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  shape.states = "another model";
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 42);
  EXPECT_EQ(machine.store().reads, 0);
}

// Another machine wrote it to the shared store. It is read from there once, and from the own disk
// after a restart.
TEST(Tiers, FillTheDiskFromASharedStore) {
  for (const char* writes : {"write_through", "write_back", "write_through_selective"}) {
    for (bool recurrent : {false, true}) {
      SCOPED_TRACE(testing::Message() << writes << recurrent);
      auto shared = std::make_shared<FakeDisk>();
      TierShape other{.recurrent = recurrent, .delay = 2, .shared = shared};
      live_once(other, {tokens_from(0, 42)});
      TierShape own{.recurrent = recurrent, .writes = writes, .delay = 2, .shared = shared};
      for (int life = 0; life < 2; ++life) {
        TierMachine machine(own);
        machine.enqueue(1, tokens_from(0, 42));
        machine.run();
        EXPECT_EQ(machine.computed, 2);
        EXPECT_EQ(machine.check_prefix(tokens_from(0, 42)), 40);
        const CacheStorageStats& stats = machine.stats();
        EXPECT_EQ(stats.layers[0].restored_tokens, life == 0 ? 0 : 40);
        EXPECT_EQ(stats.layers[1].restored_tokens, life == 0 ? 40 : 0);
        EXPECT_EQ(machine.shared().reads > 0, life == 0);
        machine.settle();
      }
    }
  }
}

// What the disk lost is read from the shared store, in the middle of a prefix too.
TEST(Tiers, FallThroughWhereTheDiskIsDamaged) {
  auto shared = std::make_shared<FakeDisk>();
  TierShape shape{.shared = shared};
  live_once(shape, {tokens_from(0, 42)});
  int i = 0;
  for (auto& [key, record] : shape.disk->records) record.damaged = ++i % 3 == 0;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
  EXPECT_EQ(machine.check_prefix(tokens_from(0, 42)), 40);
  EXPECT_EQ(machine.shared().reads, 3);
}

// With write_back, pages that were used only once are not sent to others.
TEST(Tiers, ShareWhatWasUsedTwice) {
  auto shared = std::make_shared<FakeDisk>();
  TierShape shape{.writes = "write_back", .shared = shared};
  live_once(shape, {tokens_from(0, 42)});
  EXPECT_EQ(shared->records.size(), 0u);
  live_once(shape, {tokens_from(0, 42), tokens_from(0, 42)});
  EXPECT_EQ(shared->records.size(), 10u);
}

TEST(Tiers, LoadNothingThatIsTooShortToMatter) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  shape.tokens_min = 41;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.store().reads, 0);
}

TEST(Tiers, LoadAPrefixOnceForAllWhoWaitForIt) {
  TierShape shape{.delay = 5};
  live_once(shape, {tokens_from(0, 42)});
  TierMachine machine(shape);
  for (SequenceId id = 1; id <= 3; ++id) {
    std::vector<TokenId> prompt = tokens_from(0, 40);
    prompt.push_back(static_cast<TokenId>(1000 + id));
    prompt.push_back(9);
    machine.enqueue(id, prompt);
  }
  machine.run();
  EXPECT_EQ(machine.store().reads, 10);
  EXPECT_EQ(machine.computed, 6);
  EXPECT_EQ(machine.stats().restored_tokens, 120);
}

TEST(Tiers, WaitForNoMoreOfAnothersLoadThanIsTheirs) {
  TierShape shape{.pages = 200};
  live_once(shape, {tokens_from(0, 402)});
  shape.delay = 400;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 402));
  std::vector<TokenId> other = tokens_from(0, 8);
  other.insert(other.end(), 3, 900);
  machine.enqueue(2, other);
  for (int i = 0; i < 5000 && machine.ended.empty(); ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{2}));
  EXPECT_EQ(machine.computed, 3);
  machine.run(5000);
  EXPECT_EQ(machine.computed, 3 + 2);
}

TEST(Tiers, WaitNoLongerThanThePolicySays) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  shape.prefetch = "timeout";
  shape.delay = 100000;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  int steps = 0;
  for (; machine.ended.empty() && steps < 1000; ++steps) machine.step();
  EXPECT_LT(steps, 200) << "50 ms, in steps of one";
  EXPECT_EQ(machine.computed, 42);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 1);
}

TEST(Tiers, BestEffortTakesWhatIsThereWhenItsTurnComes) {
  TierShape shape{.running_max = 1};
  live_once(shape, {tokens_from(0, 42)});
  shape.prefetch = "best_effort";
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 42) << "nobody waits";
  TierMachine busy(shape);
  busy.enqueue(1, tokens_from(500, 9), 20);
  busy.enqueue(2, tokens_from(0, 42));
  busy.run();
  EXPECT_EQ(busy.computed, 9 + 20 + 2) << "loaded while the first one ran";
}

TEST(Tiers, PublishWhatWasLoadedForSomebodyWhoLeft) {
  TierShape shape{.delay = 30};
  live_once(shape, {tokens_from(0, 42)});
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  for (int i = 0; i < 20; ++i) machine.step();
  machine.scheduler().cancel(1);
  ASSERT_NE(machine.scheduler().remove_cancelled(), nullptr);
  machine.settle();
  int64_t there = machine.check_prefix(tokens_from(0, 42));
  EXPECT_GT(there, 0);
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.check_prefix(tokens_from(0, 42)), 40);
}

TEST(Tiers, KeepWhatCameBeforeADamagedPage) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  for (auto& [key, record] : shape.disk->records) record.damaged = record.end == 24;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 42 - 20);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kChecksum], 1);
  EXPECT_EQ(machine.check_prefix(tokens_from(0, 42)), 40);
}

// The fake store aborts where a page is written before its parent.
TEST(Tiers, WriteWhatIsSoonEvictedAndItsAncestorsFirst) {
  TierShape shape{.pages = 24, .writes = "write_back"};
  TierMachine machine(shape);
  for (SequenceId id = 1; id <= 12; ++id) {
    machine.enqueue(id, tokens_from(static_cast<int>(100 * id), 26));
    machine.run();
  }
  EXPECT_GT(machine.store().writes, 40);
  EXPECT_LT(machine.store().writes, 72) << "not what was used last";
  EXPECT_EQ(machine.stats().evicted_unwritten, 0);
}

TEST(Tiers, OfferAgainWhatAStoreHasLetGoOf) {
  TierShape shape{.pages = 40, .writes = "write_back"};
  live_once(shape, {tokens_from(0, 42)});
  {
    TierMachine machine(shape);
    machine.enqueue(1, tokens_from(0, 42));
    machine.run();
    EXPECT_EQ(machine.computed, 2);
    shape.disk->records.clear();
    for (SequenceId id = 2; id <= 14; ++id) {
      machine.enqueue(id, tokens_from(static_cast<int>(1000 * id), 18));
      machine.run();
      machine.settle();
    }
    ASSERT_EQ(machine.check_prefix(tokens_from(0, 42)), 0) << "evicted";
  }
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
}

TEST(Tiers, CountWhatIsEvictedUnwritten) {
  TierShape shape{.pages = 24, .writes = "write_back", .faults = {.refuse = 1}};
  TierMachine machine(shape);
  for (SequenceId id = 1; id <= 12; ++id) {
    machine.enqueue(id, tokens_from(static_cast<int>(100 * id), 26));
    machine.run();
  }
  EXPECT_GT(machine.stats().evicted_unwritten, 40);
  EXPECT_TRUE(shape.disk->records.empty());
}

TEST(Tiers, WriteAtTheSecondUse) {
  TierShape shape{.writes = "write_through_selective"};
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 0);
  std::vector<TokenId> half = tokens_from(0, 21);
  half.push_back(900);
  machine.enqueue(2, half);
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 5);
}

TEST(Tiers, KnowASecondUseAfterAnEviction) {
  TierShape shape{.pages = 24, .writes = "write_through_selective"};
  TierMachine machine(shape);
  for (SequenceId id = 1; id <= 4; ++id) {
    machine.enqueue(id, tokens_from(static_cast<int>(100 * id), 42));
    machine.run();
  }
  machine.settle();
  EXPECT_EQ(machine.store().writes, 0);
  ASSERT_EQ(machine.check_prefix(tokens_from(100, 42)), 0) << "evicted";
  machine.enqueue(9, tokens_from(100, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 10);
}

TEST(Tiers, WriteWhatWasUsedTwiceWhenNothingElseIsToDo) {
  TierShape shape{.writes = "write_back"};
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  machine.enqueue(3, tokens_from(500, 42));
  machine.run();
  machine.step();
  EXPECT_EQ(machine.store().writes, 0);
  EXPECT_TRUE(machine.stats().busy) << "somebody is to call again";
  machine.pass_seconds(2);
  machine.step();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 10);
  EXPECT_FALSE(machine.stats().busy);
}

TEST(Tiers, TouchAPathFromItsLeafToItsRoot) {
  TierMachine machine(TierShape{});
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  machine.settle();
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  ASSERT_EQ(machine.store().touched.size(), 10u);
  TierShape fresh;
  NodeKeys keys(test::tier_digest("a model"));
  RadixTree tree(TierMachine::classes_of(fresh), {100});
  RadixNode* root = tree.open({});
  PageKey first = keys.next(keys.of(*root), tokens_from(0, 4));
  EXPECT_EQ(machine.store().touched.back(), (TierKey{first, kPathClass}));
  tree.close(root);
}

TEST(Tiers, ForgetWhatIsClearedAndWriteItAgain) {
  TierShape shape;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(shape.disk->records.size(), 10u);
  machine.scheduler().tiers()->clear();
  EXPECT_TRUE(shape.disk->records.empty());
  machine.scheduler().tree().flush();
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.computed, 84);
  EXPECT_EQ(shape.disk->records.size(), 10u);
}

}  // namespace
}  // namespace banyan::tiers_test
