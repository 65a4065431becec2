// A scheduler with a store in memory: what is loaded, which sequences wait, and what is written
// when.
#include "engine/tiers/tiers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "engine/schedule/scheduler.h"
#include "support/states.h"
#include "support/tier/fake_store.h"
#include "tier/layered_store.h"

namespace banyan::tiers_test {
namespace {

using test::FakeDisk;
using test::FakeFaults;
using test::FakeStore;

constexpr int64_t kPage = 4;
constexpr size_t kUnitBytes = 32;

StateDigest digest_of(std::string_view name) {
  return StateDigest(Hasher().text(name).finish());
}

struct Shape {
  std::shared_ptr<FakeDisk> disk = std::make_shared<FakeDisk>();
  int64_t pages = 100, slots = 8;
  bool recurrent = false;
  int running_max = 4;
  int64_t rows = 64;
  std::string writes = "write_through", prefetch = "wait_complete", states = "a model";
  int64_t tokens_min = 4;
  int delay = 0;
  FakeFaults faults = {};
  int64_t step_s = 0;  // what a step that computes takes
  SchedulePolicy policy = SchedulePolicy::kFcfs;
  std::shared_ptr<FakeDisk> shared = nullptr;  // below the disk, where there is one
};

// A scheduler, pools of bytes and a step that writes into each page what its tokens are.
class Machine {
 public:
  explicit Machine(const Shape& shape) : classes_(classes_of(shape)) {
    UnitCounts units = {shape.pages, shape.slots};
    scheduler_ = std::make_unique<Scheduler>(SchedulerConfig{.policy = shape.policy,
                                                             .running_max = shape.running_max,
                                                             .prefill_rows_max = shape.rows,
                                                             .classes = classes_,
                                                             .units = units});
    PerClass<std::vector<UnitPieces::Pool>> pools;
    for (int c = 0; c < classes_.count; ++c) {
      auto i = static_cast<size_t>(c);
      bytes_[i].resize(static_cast<size_t>(units[i]) * kUnitBytes);
      pools[i] = {{.data = bytes_[i].data(), .unit_bytes = kUnitBytes}};
    }
    step_s_ = shape.step_s;
    FakeFaults faults = shape.faults;
    faults.delay_max = shape.delay;
    auto store = std::make_unique<FakeStore>(shape.disk, faults, 1);
    store_ = store.get();
    std::unique_ptr<TierStore> stores = std::move(store);
    if (shape.shared != nullptr) {
      shape.shared->any_order = true;
      auto shared = std::make_unique<FakeStore>(shape.shared, faults, 2);
      shared_ = shared.get();
      stores = make_layered_store(std::move(stores), std::move(shared));
    }
    scheduler_->use(std::make_unique<Tiers>(
        scheduler_->tree(), TierSetup{.store = std::move(stores),
                                      .states = digest_of(shape.states),
                                      .config = {.backend = "disk",
                                                 .write_policy = shape.writes,
                                                 .prefetch_policy = shape.prefetch,
                                                 .prefetch_tokens_min = shape.tokens_min},
                                      .pieces = UnitPieces(std::move(pools)),
                                      .prefill = PrefillCost(1, 0, 1),
                                      .load = LoadCost(0, 1e15),
                                      .now_ns = [this] { return store_->now_ns(); }}));
  }

  static StateClasses classes_of(const Shape& shape) {
    std::vector<StateSpec> specs = {{.name = "keys", .width = 4}};
    if (shape.recurrent) specs.push_back(test::slot_state(8));
    return test::classes_of(specs, kPage);
  }

  void enqueue(SequenceId id, std::vector<TokenId> prompt, int64_t new_tokens = 0,
               int priority = 0) {
    auto s = std::make_unique<Sequence>();
    s->request.options.priority = priority;
    s->id = id;
    s->prompt_tokens = std::ssize(prompt);
    s->tokens_max = s->prompt_tokens + new_tokens;
    s->tokens = std::move(prompt);
    scheduler_->enqueue(std::move(s));
  }

  // False where nothing was computed.
  bool step(bool in_flight = false) {
    scheduler_->plan(plan_, in_flight);
    scheduler_->check();
    if (plan_.spans.empty()) {
      scheduler_->tiers()->idle();
      return false;
    }
    for (const PlannedSpan& span : plan_.spans) {
      computed += span.count;
      write_pages(*span.sequence, span.end());
    }
    for (const PlannedCapture& c : plan_.captures) {
      const Sequence& s = *plan_.spans[static_cast<size_t>(c.span)].sequence;
      fill(1, c.slots[1], s, c.position + 1);
    }
    pass_seconds(step_s_);
    scheduler_->commit(plan_);
    scheduler_->check();
    for (const PlannedSpan& span : plan_.spans) {
      Sequence& s = *span.sequence;
      if (s.pending() > 0) continue;
      if (s.length() == s.tokens_max) {
        ended.insert(s.id);
        scheduler_->remove(&s);
      } else {
        s.tokens.push_back(7);
      }
    }
    return true;
  }

  // Until all have ended.
  void run(int steps_max = 1000) {
    for (int i = 0; i < steps_max && scheduler_->any() != nullptr; ++i) step();
    EXPECT_EQ(scheduler_->any(), nullptr);
  }
  // Lets the store finish jobs in progress.
  void settle() {
    for (int i = 0; i < 50; ++i) step();
  }
  void pass_seconds(int64_t s) { store_->pass_ns(s * kNsPerS); }

  // The part of a prompt's pages that is in memory; aborts if a page has another's bytes.
  int64_t check_prefix(const std::vector<TokenId>& prompt) {
    Sequence s;
    s.tokens = prompt;
    RadixTree& tree = scheduler_->tree();
    RadixNode* root = tree.open({});
    PrefixMatch match = tree.match(root, s.tokens);
    for (RadixNode* n = match.node; n->parent != nullptr; n = n->parent) {
      EXPECT_EQ(content(0, n->path().unit), of(s, n->end)) << "page at " << n->end;
    }
    bool has_slot = classes_.count > 1 && match.node->parent != nullptr;
    if (has_slot) {
      EXPECT_EQ(content(1, match.node->units[1].unit), of(s, match.node->end));
    }
    int64_t end = match.node->end;
    tree.close(root);
    return end;
  }

  Scheduler& scheduler() { return *scheduler_; }
  const StepPlan& plan() const { return plan_; }
  const CacheStorageStats& stats() { return scheduler_->tiers()->stats(); }
  FakeStore& store() { return *store_; }
  FakeStore& shared() { return *shared_; }

  int64_t computed = 0;
  std::set<SequenceId> ended;

 private:
  // The state after `end` tokens: a function of all of them.
  static std::array<std::byte, kUnitBytes> of(const Sequence& s, int64_t end) {
    Hasher hasher;
    hasher.bytes(std::as_bytes(std::span(s.tokens).first(static_cast<size_t>(end))));
    Digest digest = hasher.finish();
    std::array<std::byte, kUnitBytes> bytes;
    std::ranges::copy(std::as_bytes(std::span(digest.bytes)), bytes.begin());
    return bytes;
  }
  std::array<std::byte, kUnitBytes> content(size_t c, int32_t unit) {
    std::array<std::byte, kUnitBytes> bytes;
    std::copy_n(bytes_[c].begin() + unit * static_cast<int64_t>(kUnitBytes), kUnitBytes,
                bytes.begin());
    return bytes;
  }
  void fill(size_t c, int32_t unit, const Sequence& s, int64_t end) {
    std::ranges::copy(of(s, end), bytes_[c].begin() + unit * static_cast<int64_t>(kUnitBytes));
  }
  void write_pages(const Sequence& s, int64_t end) {
    for (int64_t p = s.lease.end() / kPage; (p + 1) * kPage <= end; ++p) {
      fill(0, s.held(0).units[static_cast<size_t>(p)], s, (p + 1) * kPage);
    }
  }

  StateClasses classes_;
  PerClass<std::vector<std::byte>> bytes_;
  std::unique_ptr<Scheduler> scheduler_;  // its tiers look at the bytes until they are gone
  FakeStore *store_ = nullptr, *shared_ = nullptr;
  int64_t step_s_ = 0;
  StepPlan plan_;
};

std::vector<TokenId> text(int first, int64_t count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

// One life of a machine that computes these prompts and ends.
void live(const Shape& shape, std::initializer_list<std::vector<TokenId>> prompts) {
  Machine machine(shape);
  SequenceId id = 0;
  for (const std::vector<TokenId>& prompt : prompts) {
    machine.enqueue(++id, prompt);
    machine.run();
  }
}

TEST(Tiers, ResumeAfterARestart) {
  for (const char* writes : {"write_through", "write_back"}) {
    for (bool recurrent : {false, true}) {
      Shape shape{.recurrent = recurrent, .writes = writes, .delay = 3};
      live(shape, {text(0, 42)});
      Machine machine(shape);
      machine.enqueue(1, text(0, 42));
      machine.run();
      EXPECT_EQ(machine.computed, 2) << writes << recurrent;
      EXPECT_EQ(machine.stats().restored_tokens, 40);
      EXPECT_EQ(machine.check_prefix(text(0, 42)), 40);
      EXPECT_EQ(machine.store().reads, recurrent ? 11 : 10);
      EXPECT_EQ(machine.scheduler().cached_tokens(), 40);
    }
  }
}

// Section 2 of what identifies a state: engine/startup/state_identity.h says what is in the digest.
TEST(Tiers, FindNothingOfAnotherModelOrNamespace) {
  Shape shape;
  live(shape, {text(0, 42)});
  shape.states = "another model";
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
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
      Shape other{.recurrent = recurrent, .delay = 2, .shared = shared};
      live(other, {text(0, 42)});
      Shape own{.recurrent = recurrent, .writes = writes, .delay = 2, .shared = shared};
      for (int life = 0; life < 2; ++life) {
        Machine machine(own);
        machine.enqueue(1, text(0, 42));
        machine.run();
        EXPECT_EQ(machine.computed, 2);
        EXPECT_EQ(machine.check_prefix(text(0, 42)), 40);
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
  Shape shape{.shared = shared};
  live(shape, {text(0, 42)});
  int i = 0;
  for (auto& [key, record] : shape.disk->records) record.damaged = ++i % 3 == 0;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
  EXPECT_EQ(machine.check_prefix(text(0, 42)), 40);
  EXPECT_EQ(machine.shared().reads, 3);
}

// With write_back, pages that were used only once are not sent to others.
TEST(Tiers, ShareWhatWasUsedTwice) {
  auto shared = std::make_shared<FakeDisk>();
  Shape shape{.writes = "write_back", .shared = shared};
  live(shape, {text(0, 42)});
  EXPECT_EQ(shared->records.size(), 0u);
  live(shape, {text(0, 42), text(0, 42)});
  EXPECT_EQ(shared->records.size(), 10u);
}

TEST(Tiers, LoadNothingThatIsTooShortToMatter) {
  Shape shape;
  live(shape, {text(0, 42)});
  shape.tokens_min = 41;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.store().reads, 0);
}

TEST(Tiers, LoadAPrefixOnceForAllWhoWaitForIt) {
  Shape shape{.delay = 5};
  live(shape, {text(0, 42)});
  Machine machine(shape);
  for (SequenceId id = 1; id <= 3; ++id) {
    std::vector<TokenId> prompt = text(0, 40);
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
  Shape shape{.pages = 200};
  live(shape, {text(0, 402)});
  shape.delay = 400;
  Machine machine(shape);
  machine.enqueue(1, text(0, 402));
  std::vector<TokenId> other = text(0, 8);
  other.insert(other.end(), 3, 900);
  machine.enqueue(2, other);
  for (int i = 0; i < 5000 && machine.ended.empty(); ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{2}));
  EXPECT_EQ(machine.computed, 3);
  machine.run(5000);
  EXPECT_EQ(machine.computed, 3 + 2);
}

TEST(Tiers, LetOthersRunWhileTheyLoad) {
  Shape shape;
  live(shape, {text(0, 42)});
  shape.delay = 400;
  shape.tokens_min = 10;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.enqueue(2, text(500, 9), 3);
  for (int i = 0; i < 8; ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{2}));
  EXPECT_EQ(machine.scheduler().waiting(), 1);
  machine.run(5000);
  EXPECT_EQ(machine.computed, 9 + 3 + 2);
}

TEST(Tiers, WaitNoLongerThanThePolicySays) {
  Shape shape;
  live(shape, {text(0, 42)});
  shape.prefetch = "timeout";
  shape.delay = 100000;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  int steps = 0;
  for (; machine.ended.empty() && steps < 1000; ++steps) machine.step();
  EXPECT_LT(steps, 200) << "50 ms, in steps of one";
  EXPECT_EQ(machine.computed, 42);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 1);
}

// The time that it took to find them does not count as time to load them.
TEST(Tiers, LoadWhileStepsOfOthersTakeLong) {
  Shape shape;
  live(shape, {text(0, 42)});
  shape.prefetch = "timeout";
  shape.step_s = 1;
  Machine machine(shape);
  machine.enqueue(1, text(500, 9), 20);
  machine.step();
  machine.enqueue(2, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 0);
  EXPECT_EQ(machine.computed, 9 + 20 + 2);
}

// After a restart, say. What does not fit yet waits for room, as it would if it were computed.
TEST(Tiers, LoadABurstThatDoesNotFitAtOnce) {
  for (int delay : {0, 1}) {
    for (bool recurrent : {false, true}) {
      SCOPED_TRACE(testing::Message() << delay << recurrent);
      Shape shape{.pages = 50, .slots = 12, .recurrent = recurrent};
      live(shape, {text(0, 82), text(100, 82), text(200, 82), text(300, 82), text(400, 82)});
      shape.prefetch = "timeout";
      shape.delay = delay;
      shape.step_s = 2;
      Machine machine(shape);
      for (int i = 0; i < 5; ++i) {
        machine.enqueue(static_cast<SequenceId>(i + 1), text(100 * i, 82), 3);
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
TEST(Tiers, HaveMoreComputedElsewhereThanFitsAtOnce) {
  Shape shape{.pages = 100};
  live(shape, {text(0, 122), text(200, 122), text(400, 122), text(600, 122)});
  shape.delay = 20;
  shape.step_s = 2;
  Machine machine(shape);
  machine.store().computing = true;
  for (int i = 0; i < 4; ++i) {
    machine.enqueue(static_cast<SequenceId>(i + 1), text(200 * i, 122), 2);
  }
  machine.run(5000);
  EXPECT_EQ(machine.computed, 4 * (2 + 2));
}

TEST(Tiers, LeaveMemoryToOthersWhileOthersCompute) {
  Shape shape{.pages = 100};
  live(shape, {text(0, 122), text(200, 122), text(400, 154)});
  shape.delay = 100'000;
  shape.tokens_min = 30;
  Machine machine(shape);
  machine.store().computing = machine.store().finds_at_once = true;
  machine.enqueue(1, text(0, 122));
  machine.enqueue(2, text(200, 122));
  machine.enqueue(3, text(400, 154));
  machine.enqueue(4, text(900, 23));
  for (int i = 0; i < 20; ++i) machine.step();
  EXPECT_EQ(machine.ended, (std::set<SequenceId>{4}));
  for (SequenceId id : {1, 2, 3}) machine.scheduler().cancel(id);
  while (machine.scheduler().remove_cancelled() != nullptr) continue;
}

// What was loaded for two sequences is in the way of what each of them lacks.
TEST(Tiers, LoadTheRestWhereEachHoldsWhatTheOtherNeeds) {
  Shape shape{.pages = 400};
  live(shape, {text(0, 682), text(1000, 478)});
  shape.pages = 200;
  Machine machine(shape);
  auto first_of = [](std::vector<TokenId> tokens) {
    for (TokenId t : {5000, 5001}) tokens.push_back(t);
    return tokens;
  };
  machine.enqueue(1, first_of(text(0, 80)));
  machine.enqueue(2, text(0, 682));
  machine.enqueue(3, first_of(text(1000, 240)));
  machine.enqueue(4, text(1000, 478));
  machine.run();
  EXPECT_EQ(machine.ended.size(), 4u);
}

TEST(Tiers, KeepTheStateThatWasLoadedUntilItsSequenceRuns) {
  Shape shape{.slots = 10, .recurrent = true};
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 8; ++i) prompts.push_back(text(100 * i, 42));
  for (const auto& prompt : prompts) live(shape, {prompt});
  Machine machine(shape);
  for (size_t i = 0; i < prompts.size(); ++i) machine.enqueue(i + 1, prompts[i], 1);
  machine.run();
  EXPECT_EQ(machine.computed, 8 * (2 + 1));
}

TEST(Tiers, KeepRoomForWhoeverIsAheadInTheQueue) {
  Shape shape{.pages = 50, .policy = SchedulePolicy::kPriority};
  live(shape, {text(0, 122)});
  shape.delay = 1;
  Machine machine(shape);
  for (SequenceId id = 1; id <= 8; ++id) {
    machine.enqueue(id, text(static_cast<int>(1000 * id), 12), 60);
  }
  machine.step();
  machine.enqueue(9, text(0, 122), 0, 5);
  for (int i = 0; i < 1000 && !machine.ended.contains(9); ++i) machine.step();
  EXPECT_LE(machine.ended.size(), 4u);
  EXPECT_EQ(machine.stats().restored_tokens, 120);
  machine.run();
}

// Pages that the transfer takes may be what a step in flight has still to copy.
TEST(Tiers, ReadNothingWhileCopiesAreInFlight) {
  Shape shape;
  live(shape, {text(100, 42)});
  Machine machine(shape);
  machine.enqueue(1, text(0, 41));
  machine.run();
  std::vector<TokenId> part = text(0, 42);
  part.push_back(900);
  machine.enqueue(2, part, 9);
  machine.enqueue(3, text(100, 42));
  machine.step();
  ASSERT_FALSE(machine.plan().copies.empty());
  machine.step(true);
  EXPECT_EQ(machine.store().reads, 0);
  machine.step(true);
  EXPECT_EQ(machine.store().reads, 10);
  machine.run();
}

TEST(Tiers, LoadWhileALongPromptTakesAllRows) {
  Shape shape{.rows = 8};
  live(shape, {text(0, 42), text(100, 42)});
  Machine machine(shape);
  machine.enqueue(1, text(500, 200));
  machine.step();
  machine.enqueue(2, text(0, 42));
  machine.enqueue(3, text(100, 42));
  for (int i = 0; i < 3; ++i) machine.step();
  EXPECT_EQ(machine.ended.size(), 0u);
  EXPECT_EQ(machine.store().reads, 20);
  machine.run();
  EXPECT_EQ(machine.computed, 200 + 2 + 2);
}

// It is loaded when there is room again.
TEST(Tiers, GiveWayBeforeARunningSequenceIsRetracted) {
  Shape shape{.pages = 40};
  live(shape, {text(0, 102)});
  shape.delay = 300;
  Machine machine(shape);
  machine.store().computing = true;
  machine.enqueue(1, text(500, 9), 60);
  machine.enqueue(2, text(600, 9), 60);
  machine.step();
  machine.enqueue(3, text(0, 102));
  machine.run(5000);
  EXPECT_EQ(machine.scheduler().retracted(), 0);
  EXPECT_EQ(machine.computed, 2 * (9 + 60) + 2);
}

// Ten tokens are not worth waiting for what another sequence has loaded, or computed elsewhere.
TEST(Tiers, WaitForNobodyWhoLoadsLittleOfTheirPrompt) {
  Shape shape{.tokens_min = 16};
  std::vector<TokenId> other = text(0, 8);
  for (TokenId t : text(900, 34)) other.push_back(t);
  live(shape, {text(0, 42), other});
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.enqueue(2, other);
  machine.run();
  EXPECT_EQ(machine.computed, 4);
  EXPECT_EQ(machine.stats().restored_tokens, 80);
  EXPECT_EQ(machine.store().reads, 20) << "both read the two pages that they share";
}

TEST(Tiers, ReadWhatOnlyTheSharedStoreHasFromThere) {
  Shape other{.shared = std::make_shared<FakeDisk>()};
  live(other, {text(0, 42)});
  Shape own{.prefetch = "timeout", .step_s = 2, .shared = other.shared};
  Machine machine(own);
  machine.enqueue(1, text(500, 9), 20);
  machine.step();
  machine.enqueue(2, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.store().reads, 0);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kTimeout], 0);
  EXPECT_EQ(machine.computed, 9 + 20 + 2);
}

TEST(Tiers, TryAStoreThatWasTooSlowAgain) {
  Shape shape;
  live(shape, {text(0, 42), text(100, 42), text(200, 42)});
  Machine machine(shape);
  machine.store().s_per_mib = 1e6;  // computing a token takes a second
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
  machine.enqueue(2, text(100, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2 + 42);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kCheaperToCompute], 1);
  machine.pass_seconds(61);
  machine.enqueue(3, text(200, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2 + 42 + 2);
}

TEST(Tiers, BestEffortTakesWhatIsThereWhenItsTurnComes) {
  Shape shape{.running_max = 1};
  live(shape, {text(0, 42)});
  shape.prefetch = "best_effort";
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 42) << "nobody waits";
  Machine busy(shape);
  busy.enqueue(1, text(500, 9), 20);
  busy.enqueue(2, text(0, 42));
  busy.run();
  EXPECT_EQ(busy.computed, 9 + 20 + 2) << "loaded while the first one ran";
}

TEST(Tiers, PublishWhatWasLoadedForSomebodyWhoLeft) {
  Shape shape{.delay = 30};
  live(shape, {text(0, 42)});
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  for (int i = 0; i < 20; ++i) machine.step();
  machine.scheduler().cancel(1);
  ASSERT_NE(machine.scheduler().remove_cancelled(), nullptr);
  machine.settle();
  int64_t there = machine.check_prefix(text(0, 42));
  EXPECT_GT(there, 0);
  machine.enqueue(2, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.check_prefix(text(0, 42)), 40);
}

TEST(Tiers, KeepWhatCameBeforeADamagedPage) {
  Shape shape;
  live(shape, {text(0, 42)});
  for (auto& [key, record] : shape.disk->records) record.damaged = record.end == 24;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 42 - 20);
  EXPECT_EQ(machine.stats().misses[CacheStorageStats::kChecksum], 1);
  EXPECT_EQ(machine.check_prefix(text(0, 42)), 40);
}

// The fake store aborts where a page is written before its parent.
TEST(Tiers, WriteWhatIsSoonEvictedAndItsAncestorsFirst) {
  Shape shape{.pages = 24, .writes = "write_back"};
  Machine machine(shape);
  for (SequenceId id = 1; id <= 12; ++id) {
    machine.enqueue(id, text(static_cast<int>(100 * id), 26));
    machine.run();
  }
  EXPECT_GT(machine.store().writes, 40);
  EXPECT_LT(machine.store().writes, 72) << "not what was used last";
  EXPECT_EQ(machine.stats().evicted_unwritten, 0);
}

TEST(Tiers, OfferAgainWhatAStoreHasLetGoOf) {
  Shape shape{.pages = 40, .writes = "write_back"};
  live(shape, {text(0, 42)});
  {
    Machine machine(shape);
    machine.enqueue(1, text(0, 42));
    machine.run();
    EXPECT_EQ(machine.computed, 2);
    shape.disk->records.clear();
    for (SequenceId id = 2; id <= 14; ++id) {
      machine.enqueue(id, text(static_cast<int>(1000 * id), 18));
      machine.run();
      machine.settle();
    }
    ASSERT_EQ(machine.check_prefix(text(0, 42)), 0) << "evicted";
  }
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  EXPECT_EQ(machine.computed, 2);
}

TEST(Tiers, CountWhatIsEvictedUnwritten) {
  Shape shape{.pages = 24, .writes = "write_back", .faults = {.refuse = 1}};
  Machine machine(shape);
  for (SequenceId id = 1; id <= 12; ++id) {
    machine.enqueue(id, text(static_cast<int>(100 * id), 26));
    machine.run();
  }
  EXPECT_GT(machine.stats().evicted_unwritten, 40);
  EXPECT_TRUE(shape.disk->records.empty());
}

TEST(Tiers, WriteAtTheSecondUse) {
  Shape shape{.writes = "write_through_selective"};
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 0);
  std::vector<TokenId> half = text(0, 21);
  half.push_back(900);
  machine.enqueue(2, half);
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 5);
}

TEST(Tiers, KnowASecondUseAfterAnEviction) {
  Shape shape{.pages = 24, .writes = "write_through_selective"};
  Machine machine(shape);
  for (SequenceId id = 1; id <= 4; ++id) {
    machine.enqueue(id, text(static_cast<int>(100 * id), 42));
    machine.run();
  }
  machine.settle();
  EXPECT_EQ(machine.store().writes, 0);
  ASSERT_EQ(machine.check_prefix(text(100, 42)), 0) << "evicted";
  machine.enqueue(9, text(100, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.store().writes, 10);
}

TEST(Tiers, WriteWhatWasUsedTwiceWhenNothingElseIsToDo) {
  Shape shape{.writes = "write_back"};
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  machine.enqueue(2, text(0, 42));
  machine.run();
  machine.enqueue(3, text(500, 42));
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
  Machine machine(Shape{});
  machine.enqueue(1, text(0, 42));
  machine.run();
  machine.settle();
  machine.enqueue(2, text(0, 42));
  machine.run();
  ASSERT_EQ(machine.store().touched.size(), 10u);
  Shape fresh;
  NodeKeys keys(digest_of("a model"));
  RadixTree tree(Machine::classes_of(fresh), {100});
  RadixNode* root = tree.open({});
  PageKey first = keys.next(keys.of(*root), text(0, 4));
  EXPECT_EQ(machine.store().touched.back(), (TierKey{first, kPathClass}));
  tree.close(root);
}

TEST(Tiers, ForgetWhatIsClearedAndWriteItAgain) {
  Shape shape;
  Machine machine(shape);
  machine.enqueue(1, text(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(shape.disk->records.size(), 10u);
  machine.scheduler().tiers()->clear();
  EXPECT_TRUE(shape.disk->records.empty());
  machine.scheduler().tree().flush();
  machine.enqueue(2, text(0, 42));
  machine.run();
  machine.settle();
  EXPECT_EQ(machine.computed, 84);
  EXPECT_EQ(shape.disk->records.size(), 10u);
}

// Memory is full of units being written or loaded: a sequence that needs all of it waits for them,
// and for nothing else.
TEST(Tiers, GiveWayToASequenceThatNeedsAllPages) {
  Shape shape{.pages = 11, .delay = 60};
  {
    Machine machine(shape);
    for (SequenceId id = 1; id <= 3; ++id) {
      machine.enqueue(id, text(static_cast<int>(100 * id), 42));
      machine.run();
    }
    EXPECT_EQ(machine.ended.size(), 3u);
  }
  Machine machine(shape);
  machine.enqueue(1, text(300, 42));
  machine.enqueue(2, text(900, 42));
  machine.run(5000);
  EXPECT_EQ(machine.ended.size(), 2u);
}

}  // namespace
}  // namespace banyan::tiers_test
