// Stores while others run, steps take long, and memory is short.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "engine/tiers/tiers.h"
#include "support/tier/tier_machine.h"

namespace banyan::tiers_under_load_test {
namespace {

using test::FakeDisk;
using test::live_once;
using test::TierMachine;
using test::TierShape;
using test::tokens_from;

TEST(TiersUnderLoad, LetOthersRunWhileTheyLoad) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  shape.delay = 400;
  shape.tokens_min = 10;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.enqueue(2, tokens_from(500, 9), 3);
  for (int i = 0; i < 8; ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{2}));
  EXPECT_EQ(machine.scheduler().waiting(), 1);
  machine.run(5000);
  EXPECT_EQ(machine.computed, 9 + 3 + 2);
}

// The time that it took to find them does not count as time to load them.
TEST(TiersUnderLoad, LoadWhileStepsOfOthersTakeLong) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42)});
  shape.prefetch = "timeout";
  shape.step_s = 1;
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(500, 9), 20);
  machine.step();
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 0);
  EXPECT_EQ(machine.computed, 9 + 20 + 2);
}

// After a restart, say. What does not fit yet waits for room, as it would if it were computed.
TEST(TiersUnderLoad, LoadABurstThatDoesNotFitAtOnce) {
  for (int delay : {0, 1}) {
    for (bool recurrent : {false, true}) {
      SCOPED_TRACE(testing::Message() << delay << recurrent);
      TierShape shape{.pages = 50, .slots = 12, .recurrent = recurrent};
      live_once(shape, {tokens_from(0, 82), tokens_from(100, 82), tokens_from(200, 82),
                        tokens_from(300, 82), tokens_from(400, 82)});
      shape.prefetch = "timeout";
      shape.delay = delay;
      shape.step_s = 2;
      TierMachine machine(shape);
      for (int i = 0; i < 5; ++i) {
        machine.enqueue(static_cast<SequenceId>(i + 1), tokens_from(100 * i, 82), 3);
      }
      machine.run();
      EXPECT_EQ(machine.computed, 5 * (2 + 3));
      EXPECT_EQ(machine.stats().restored_tokens, 5 * 80);
      EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 0);
      EXPECT_EQ(machine.scheduler().retracted(), 0);
    }
  }
}

// What another engine computes may hold a part of the memory only. The rest waits for its turn.
TEST(TiersUnderLoad, HaveMoreComputedElsewhereThanFitsAtOnce) {
  TierShape shape{.pages = 100};
  live_once(shape, {tokens_from(0, 122), tokens_from(200, 122), tokens_from(400, 122),
                    tokens_from(600, 122)});
  shape.delay = 20;
  shape.step_s = 2;
  TierMachine machine(shape);
  machine.store().computing = true;
  for (int i = 0; i < 4; ++i) {
    machine.enqueue(static_cast<SequenceId>(i + 1), tokens_from(200 * i, 122), 2);
  }
  machine.run(5000);
  EXPECT_EQ(machine.computed, 4 * (2 + 2));
}

// As soon as others are computed, though the memory that is free has become less.
TEST(TiersUnderLoad, HaveTheNextComputedElsewhereWhileTheOthersRun) {
  TierShape shape{.pages = 120};
  live_once(shape, {tokens_from(0, 122), tokens_from(200, 122), tokens_from(400, 154)});
  shape.delay = 3;
  TierMachine machine(shape);
  machine.store().computing = machine.store().finds_at_once = true;
  machine.enqueue(1, tokens_from(0, 122), 40);
  machine.enqueue(2, tokens_from(200, 122), 40);
  machine.enqueue(3, tokens_from(400, 154));
  for (int i = 0; i < 40 && machine.store().reads < 98; ++i) machine.step();
  EXPECT_EQ(machine.store().reads, 98);
  EXPECT_TRUE(machine.ended.empty());
  machine.run();
}

TEST(TiersUnderLoad, LeaveMemoryToOthersWhileOthersCompute) {
  TierShape shape{.pages = 100};
  live_once(shape, {tokens_from(0, 122), tokens_from(200, 122), tokens_from(400, 154)});
  shape.delay = 100'000;
  shape.tokens_min = 30;
  TierMachine machine(shape);
  machine.store().computing = machine.store().finds_at_once = true;
  machine.enqueue(1, tokens_from(0, 122));
  machine.enqueue(2, tokens_from(200, 122));
  machine.enqueue(3, tokens_from(400, 154));
  machine.enqueue(4, tokens_from(900, 23));
  for (int i = 0; i < 20; ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{4}));
  for (SequenceId id : {1, 2, 3}) machine.scheduler().cancel(id);
  while (machine.scheduler().remove_cancelled() != nullptr) continue;
}

// What was loaded for two sequences is in the way of what each of them lacks.
TEST(TiersUnderLoad, LoadTheRestWhereEachHoldsWhatTheOtherNeeds) {
  TierShape shape{.pages = 400};
  live_once(shape, {tokens_from(0, 682), tokens_from(1000, 478)});
  shape.pages = 200;
  TierMachine machine(shape);
  auto first_of = [](std::vector<TokenId> tokens) {
    for (TokenId t : {5000, 5001}) tokens.push_back(t);
    return tokens;
  };
  machine.enqueue(1, first_of(tokens_from(0, 80)));
  machine.enqueue(2, tokens_from(0, 682));
  machine.enqueue(3, first_of(tokens_from(1000, 240)));
  machine.enqueue(4, tokens_from(1000, 478));
  machine.run();
  EXPECT_EQ(machine.ended.size(), 4u);
}

TEST(TiersUnderLoad, KeepTheStateThatWasLoadedUntilItsSequenceRuns) {
  TierShape shape{.slots = 10, .recurrent = true};
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 8; ++i) prompts.push_back(tokens_from(100 * i, 42));
  for (const auto& prompt : prompts) live_once(shape, {prompt});
  TierMachine machine(shape);
  for (size_t i = 0; i < prompts.size(); ++i) machine.enqueue(i + 1, prompts[i], 1);
  machine.run();
  EXPECT_EQ(machine.computed, 8 * (2 + 1));
}

TEST(TiersUnderLoad, KeepRoomForWhoeverIsAheadInTheQueue) {
  TierShape shape{.pages = 50, .policy = SchedulePolicy::kPriority};
  live_once(shape, {tokens_from(0, 122)});
  shape.delay = 1;
  TierMachine machine(shape);
  for (SequenceId id = 1; id <= 8; ++id) {
    machine.enqueue(id, tokens_from(static_cast<int>(1000 * id), 12), 60);
  }
  machine.step();
  machine.enqueue(9, tokens_from(0, 122), 0, 5);
  for (int i = 0; i < 1000 && !machine.ended.contains(9); ++i) machine.step();
  EXPECT_LE(machine.ended.size(), 4u);
  EXPECT_EQ(machine.stats().restored_tokens, 120);
  machine.run();
}

// Pages that the transfer takes may be what a step in flight has still to copy.
TEST(TiersUnderLoad, ReadNothingWhileCopiesAreInFlight) {
  TierShape shape;
  live_once(shape, {tokens_from(100, 42)});
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 41));
  machine.run();
  std::vector<TokenId> part = tokens_from(0, 42);
  part.push_back(900);
  machine.enqueue(2, part, 9);
  machine.enqueue(3, tokens_from(100, 42));
  machine.step();
  ASSERT_FALSE(machine.plan().copies.empty());
  machine.step(true);
  EXPECT_EQ(machine.store().reads, 0);
  machine.step(true);
  EXPECT_EQ(machine.store().reads, 10);
  machine.run();
}

TEST(TiersUnderLoad, LoadWhileALongPromptTakesAllRows) {
  TierShape shape{.rows = 8};
  live_once(shape, {tokens_from(0, 42), tokens_from(100, 42)});
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(500, 200));
  machine.step();
  machine.enqueue(2, tokens_from(0, 42));
  machine.enqueue(3, tokens_from(100, 42));
  for (int i = 0; i < 3; ++i) machine.step();
  EXPECT_EQ(machine.ended.size(), 0u);
  EXPECT_EQ(machine.store().reads, 20);
  machine.run();
  EXPECT_EQ(machine.computed, 200 + 2 + 2);
}

// It is loaded when there is room again.
TEST(TiersUnderLoad, GiveWayBeforeARunningSequenceIsRetracted) {
  TierShape shape{.pages = 40};
  live_once(shape, {tokens_from(0, 102)});
  shape.delay = 300;
  TierMachine machine(shape);
  machine.store().computing = true;
  machine.enqueue(1, tokens_from(500, 9), 60);
  machine.enqueue(2, tokens_from(600, 9), 60);
  machine.step();
  machine.enqueue(3, tokens_from(0, 102));
  machine.run(5000);
  EXPECT_EQ(machine.scheduler().retracted(), 0);
  EXPECT_EQ(machine.computed, 2 * (9 + 60) + 2);
}

// Ten tokens are not worth waiting for what another sequence has loaded, or computed elsewhere.
TEST(TiersUnderLoad, WaitForNobodyWhoLoadsLittleOfTheirPrompt) {
  TierShape shape{.tokens_min = 16};
  std::vector<TokenId> other = tokens_from(0, 8);
  for (TokenId t : tokens_from(900, 34)) other.push_back(t);
  live_once(shape, {tokens_from(0, 42), other});
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(0, 42));
  machine.enqueue(2, other);
  machine.run();
  EXPECT_EQ(machine.computed, 4);
  EXPECT_EQ(machine.stats().restored_tokens, 80);
  EXPECT_EQ(machine.store().reads, 20) << "both read the two pages that they share";
}

TEST(TiersUnderLoad, ReadWhatOnlyTheSharedStoreHasFromThere) {
  TierShape other{.shared = std::make_shared<FakeDisk>()};
  live_once(other, {tokens_from(0, 42)});
  TierShape own{.prefetch = "timeout", .step_s = 2, .shared = other.shared};
  TierMachine machine(own);
  machine.enqueue(1, tokens_from(500, 9), 20);
  machine.step();
  machine.enqueue(2, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.store().reads, 0);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 0);
  EXPECT_EQ(machine.computed, 9 + 20 + 2);
}

TEST(TiersUnderLoad, TryAStoreThatWasTooSlowAgain) {
  TierShape shape;
  live_once(shape, {tokens_from(0, 42), tokens_from(100, 42), tokens_from(200, 42)});
  TierMachine machine(shape);
  machine.store().s_per_mib = 1e6;  // computing a token takes a second
  machine.enqueue(1, tokens_from(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
  machine.enqueue(2, tokens_from(100, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2 + 42);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kCheaperToCompute], 1);
  machine.pass_seconds(61);
  machine.enqueue(3, tokens_from(200, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2 + 42 + 2);
}

// Memory is full of units being written or loaded: a sequence that needs all of it waits for them,
// and for nothing else.
TEST(TiersUnderLoad, GiveWayToASequenceThatNeedsAllPages) {
  TierShape shape{.pages = 11, .delay = 60};
  {
    TierMachine machine(shape);
    for (SequenceId id = 1; id <= 3; ++id) {
      machine.enqueue(id, tokens_from(static_cast<int>(100 * id), 42));
      machine.run();
    }
    EXPECT_EQ(machine.ended.size(), 3u);
  }
  TierMachine machine(shape);
  machine.enqueue(1, tokens_from(300, 42));
  machine.enqueue(2, tokens_from(900, 42));
  machine.run(5000);
  EXPECT_EQ(machine.ended.size(), 2u);
}

}  // namespace
}  // namespace banyan::tiers_under_load_test
