// The scheduler without a model: admission, shared prefixes, retraction, policies and snapshots.
#include "engine/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/random.h"
#include "support/states.h"

namespace banyan::scheduler_test {
namespace {

SchedulerConfig config_of(int64_t pages, int running_max, int64_t rows) {
  return {.running_max = running_max,
          .prefill_rows_max = rows,
          .classes = {.page_size_tokens = 4},
          .units = {pages}};
}

SchedulerConfig recurrent_config(int64_t pages, int running_max, int64_t slots) {
  SchedulerConfig config = config_of(pages, running_max, 16);
  config.classes = test::classes_of({test::slot_state(8)}, 4);
  config.units[1] = slots;
  return config;
}

std::vector<TokenId> numbers(int first, int64_t count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

std::unique_ptr<Sequence> sequence_of(SequenceId id, std::vector<TokenId> prompt,
                                      int64_t new_tokens, int priority = 0) {
  auto s = std::make_unique<Sequence>();
  s->id = id;
  s->request.options.priority = priority;
  s->prompt_tokens = static_cast<int64_t>(prompt.size());
  s->tokens_max = s->prompt_tokens + new_tokens;
  s->tokens.reserve(static_cast<size_t>(s->tokens_max));
  s->tokens.insert(s->tokens.end(), prompt.begin(), prompt.end());
  return s;
}

std::unique_ptr<Sequence> sequence_of(SequenceId id, int64_t prompt, int64_t new_tokens) {
  return sequence_of(id, numbers(static_cast<int>(id) * 1000, prompt), new_tokens);
}

// Executes a step: marks what is planned as computed, and gives complete sequences a token.
void finish_step(Scheduler& scheduler, StepPlan& plan) {
  for (const PlannedSpan& span : plan.spans) ASSERT_EQ(span.first, span.sequence->computed);
  scheduler.commit(plan);
  scheduler.check();
  for (const PlannedSpan& span : plan.spans) {
    Sequence& s = *span.sequence;
    if (s.pending() > 0) continue;
    if (s.length() == s.tokens_max) {
      scheduler.remove(&s);
    } else {
      s.tokens.push_back(7);
    }
  }
  scheduler.check();
}

std::vector<SequenceId> planned_ids(const StepPlan& plan) {
  std::vector<SequenceId> ids;
  for (const PlannedSpan& span : plan.spans) ids.push_back(span.sequence->id);
  return ids;
}

// The order in which sequences are first planned, one step after the other to the end.
std::vector<SequenceId> order_of_service(Scheduler& scheduler) {
  std::vector<SequenceId> order;
  StepPlan plan;
  for (scheduler.plan(plan); !plan.spans.empty(); scheduler.plan(plan)) {
    for (SequenceId id : planned_ids(plan)) {
      if (std::ranges::find(order, id) == order.end()) order.push_back(id);
    }
    finish_step(scheduler, plan);
  }
  return order;
}

TEST(Scheduler, DecodesBesideAChunkOfPrompts) {
  Scheduler scheduler(config_of(100, 4, 16));
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, 10, 30));
  scheduler.plan(plan);
  finish_step(scheduler, plan);
  scheduler.enqueue(sequence_of(2, 40, 20));
  scheduler.enqueue(sequence_of(3, 5, 9));
  scheduler.plan(plan);
  EXPECT_EQ(planned_ids(plan), (std::vector<SequenceId>{1, 2}));
  EXPECT_EQ(plan.spans[0].count, 1);
  EXPECT_EQ(plan.spans[1].count, 16);
  finish_step(scheduler, plan);
  scheduler.plan(plan);
  finish_step(scheduler, plan);
  scheduler.plan(plan);
  EXPECT_EQ(planned_ids(plan), (std::vector<SequenceId>{1, 2, 3}));
  EXPECT_EQ(plan.spans[1].count, 8) << "the rest of 40";
  EXPECT_EQ(plan.spans[2].count, 5);
}

TEST(Scheduler, ReadsFewerRowsOfPromptsWhileOthersDecode) {
  Scheduler scheduler(config_of(100, 4, 16));
  scheduler.limit_prefill(4);
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, 30, 3));
  scheduler.enqueue(sequence_of(2, 30, 3));
  auto rows = [&] {
    scheduler.plan(plan);
    std::vector<int64_t> counts;
    for (const PlannedSpan& span : plan.spans) counts.push_back(span.count);
    finish_step(scheduler, plan);
    return counts;
  };
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(rows(), (Rows{16}));
  EXPECT_EQ(rows(), (Rows{14, 2})) << "none decodes yet";
  EXPECT_EQ(rows(), (Rows{1, 4}));
  EXPECT_EQ(rows(), (Rows{1, 4}));
  EXPECT_EQ(rows(), (Rows{1, 4}));
  EXPECT_EQ(rows(), (Rows{16})) << "the first has ended";
}

TEST(Scheduler, StartsBehindAPrefixThatIsThere) {
  Scheduler scheduler(config_of(100, 4, 64));
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, numbers(0, 21), 1));
  order_of_service(scheduler);
  scheduler.enqueue(sequence_of(2, numbers(0, 30), 1));
  scheduler.plan(plan);
  ASSERT_EQ(plan.spans.size(), 1u);
  EXPECT_EQ(plan.spans[0].first, 21) << "five pages, and a token of the sixth by copy";
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].unit_class, kPathClass);
  EXPECT_EQ(plan.copies[0].tokens, 1);
  EXPECT_EQ(plan.spans[0].sequence->cached_tokens, 21);
}

TEST(Scheduler, ComputesAPrefixOnceForAllWhoWaitForIt) {
  SchedulerConfig config = config_of(200, 8, 16);
  for (SchedulePolicy policy : {SchedulePolicy::kFcfs, SchedulePolicy::kLpm}) {
    config.policy = policy;
    Scheduler scheduler(config);
    for (SequenceId id = 1; id <= 4; ++id) {
      std::vector<TokenId> prompt = numbers(0, 42);
      prompt.push_back(static_cast<TokenId>(1000 + id));
      scheduler.enqueue(sequence_of(id, prompt, 1));
    }
    StepPlan plan;
    int64_t rows = 0;
    for (scheduler.plan(plan); !plan.spans.empty(); scheduler.plan(plan)) {
      for (const PlannedSpan& span : plan.spans) rows += span.count;
      finish_step(scheduler, plan);
    }
    EXPECT_EQ(rows, 43 + 3 + 4) << "one prompt, three last tokens, four generated";
    EXPECT_EQ(scheduler.cached_tokens(), 3 * 42);
  }
}

// With recurrent state, also for a sequence that arrives when the first has computed pages, but no
// snapshot.
TEST(Scheduler, FollowsOneWhoWillPassASnapshot) {
  Scheduler scheduler(recurrent_config(200, 8, 16));
  StepPlan plan;
  auto prompt = [](TokenId own) {
    std::vector<TokenId> tokens = numbers(0, 42);
    tokens.insert(tokens.end(), {own, own, own});
    return tokens;
  };
  scheduler.enqueue(sequence_of(1, prompt(1001), 1));
  scheduler.plan(plan);
  finish_step(scheduler, plan);
  EXPECT_EQ(plan.spans[0].count, 16) << "four of its eleven pages are there";
  for (SequenceId id : {2, 3}) {
    scheduler.enqueue(sequence_of(id, prompt(static_cast<TokenId>(1000 + id)), 1));
  }
  order_of_service(scheduler);
  EXPECT_EQ(scheduler.cached_tokens(), 2 * 40) << "up to the last aligned position in common";
}

TEST(Scheduler, FollowersGoOnWhenTheirLeaderIsCancelled) {
  Scheduler scheduler(config_of(200, 8, 8));
  scheduler.enqueue(sequence_of(1, numbers(0, 40), 1));
  scheduler.enqueue(sequence_of(2, numbers(0, 40), 1));
  StepPlan plan;
  scheduler.plan(plan);
  EXPECT_EQ(planned_ids(plan), (std::vector<SequenceId>{1}));
  finish_step(scheduler, plan);
  scheduler.cancel(1);
  EXPECT_EQ(scheduler.remove_cancelled()->id, 1u);
  scheduler.plan(plan);
  ASSERT_EQ(planned_ids(plan), (std::vector<SequenceId>{2}));
  EXPECT_EQ(plan.spans[0].first, 8) << "what was computed is not lost";
}

TEST(Scheduler, RetractsWhoCameLastAndFinishesAll) {
  Scheduler scheduler(config_of(10, 4, 64));
  for (SequenceId id = 1; id <= 3; ++id) scheduler.enqueue(sequence_of(id, 4, 36));
  std::vector<SequenceId> order = order_of_service(scheduler);
  EXPECT_EQ(order, (std::vector<SequenceId>{1, 2, 3}));
  EXPECT_GT(scheduler.retracted(), 0);
  EXPECT_EQ(scheduler.running() + scheduler.waiting(), 0);
}

TEST(Scheduler, CountsWhatEachClientHasInTheQueue) {
  Scheduler scheduler(config_of(10, 4, 16));
  for (SequenceId id = 1; id <= 4; ++id) {
    std::unique_ptr<Sequence> s = sequence_of(id, 4, 36);
    s->request.options.client = id <= 2 ? "a" : "b";
    scheduler.enqueue(std::move(s));
  }
  const FairShares& waiting = scheduler.waiting_clients();
  EXPECT_EQ(waiting.held_by("a"), 2);
  EXPECT_EQ(waiting.held_by("b"), 2);
  scheduler.cancel(4);
  EXPECT_NE(scheduler.remove_cancelled(), nullptr);
  StepPlan plan;
  for (scheduler.plan(plan); scheduler.retracted() == 0; scheduler.plan(plan)) {
    finish_step(scheduler, plan);  // which compares the counts with the sequences
  }
  EXPECT_EQ(waiting.total(), scheduler.waiting());
  EXPECT_GT(waiting.total(), 0) << "retracted, it waits again";
  finish_step(scheduler, plan);
  order_of_service(scheduler);
  EXPECT_EQ(waiting.total(), 0);
}

TEST(Scheduler, ServesTheHighestPriorityFirst) {
  SchedulerConfig config = config_of(100, 1, 64);
  config.policy = SchedulePolicy::kPriority;
  Scheduler scheduler(config);
  for (SequenceId id = 1; id <= 4; ++id) {
    scheduler.enqueue(sequence_of(id, numbers(static_cast<int>(id) * 100, 9), 1, id == 3 ? 5 : 1));
  }
  EXPECT_EQ(order_of_service(scheduler), (std::vector<SequenceId>{3, 1, 2, 4}));
}

TEST(Scheduler, ServesProgramsInTheOrderOfTheirBeginning) {
  for (SchedulePolicy policy : {SchedulePolicy::kFcfs, SchedulePolicy::kLpm}) {
    SchedulerConfig config = config_of(100, 1, 64);
    config.policy = policy;
    Scheduler scheduler(config);
    for (SequenceId id = 1; id <= 4; ++id) {
      std::unique_ptr<Sequence> s = sequence_of(id, 9, 1);
      s->queues_ns = id == 3 ? 5 : 10;  // the second call of a program that began before the others
      scheduler.enqueue(std::move(s));
    }
    EXPECT_EQ(order_of_service(scheduler), (std::vector<SequenceId>{3, 1, 2, 4}));
  }
}

TEST(Scheduler, ServesTheLongestPrefixFirstButNeverForgetsTheRest) {
  SchedulerConfig config = config_of(400, 1, 64);
  config.policy = SchedulePolicy::kLpm;
  config.aging_period = 4;
  Scheduler scheduler(config);
  scheduler.enqueue(sequence_of(100, numbers(0, 41), 1));
  order_of_service(scheduler);
  for (SequenceId id = 1; id <= 3; ++id) scheduler.enqueue(sequence_of(id, 20, 1));  // cold
  for (SequenceId id = 11; id <= 30; ++id) {
    std::vector<TokenId> prompt = numbers(0, 40);
    prompt.push_back(static_cast<TokenId>(id * 1000));
    scheduler.enqueue(sequence_of(id, prompt, 1));
  }
  std::vector<SequenceId> order = order_of_service(scheduler);
  auto place = [&](SequenceId id) { return std::ranges::find(order, id) - order.begin(); };
  EXPECT_EQ(order[0], 11u);
  // Sequence k of the cold ones found k - 1 others: (k - 1 + 1) * 4 admissions at most.
  for (SequenceId id = 1; id <= 3; ++id) EXPECT_LT(place(id), static_cast<int64_t>(id) * 4);
}

TEST(Scheduler, LeavesSnapshotsWhereTheNextWillWantThem) {
  Scheduler scheduler(recurrent_config(100, 2, 8));
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, numbers(0, 30), 1));
  scheduler.plan(plan);
  EXPECT_TRUE(plan.captures.empty());
  EXPECT_EQ(plan.spans[0].count, 16);
  finish_step(scheduler, plan);
  scheduler.plan(plan);
  ASSERT_EQ(plan.captures.size(), 1u) << "the last aligned position before the prompt's end";
  EXPECT_EQ(plan.captures[0].position, 23);
  finish_step(scheduler, plan);
  order_of_service(scheduler);

  std::vector<TokenId> other = numbers(0, 18);
  for (TokenId token : {500, 501, 502}) other.push_back(token);
  scheduler.enqueue(sequence_of(2, other, 1));
  scheduler.plan(plan);
  EXPECT_EQ(plan.spans[0].first, 0) << "pages up to 16, but the snapshot is at 24";
  EXPECT_EQ(plan.captures.size(), 1u);
  EXPECT_EQ(plan.captures[0].position, 15) << "where one was missing, and before the prompt's end";
  finish_step(scheduler, plan);
  order_of_service(scheduler);
  other.back() = 600;
  scheduler.enqueue(sequence_of(3, other, 1));
  scheduler.plan(plan);
  EXPECT_EQ(plan.spans[0].first, 16);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].unit_class, 1);
}

// Each of the classes that there are, or not.
void add_random_classes(SchedulerConfig& config, const std::function<int(int)>& below) {
  std::vector<StateSpec> specs;
  if (below(2) == 0) specs.push_back(test::window_state(1 + below(12)));
  if (below(2) == 0) specs.push_back(test::slot_state(8, below(2) == 0));
  if (below(4) == 0) specs.push_back(test::window_state(20));
  if (below(4) == 0) specs.push_back(test::window_state(1 + below(12), true));
  if (below(4) == 0) specs.push_back(test::advisory_slot_state());
  if (below(4) == 0) specs.push_back(test::own_slot_state());
  config.classes = test::classes_of(specs, 4);
  for (int c = 1; c < config.classes.count; ++c) {
    int64_t slots = config.running_max + (config.classes[c].snapshots() ? below(4) : 0);
    config.units[static_cast<size_t>(c)] = config.classes[c].paged() ? 10 + below(8) : slots;
  }
}

// Random arrivals, ends, cancellations and classes of state: every unit is in exactly one place
// after every step (Scheduler::check), rows are not exceeded, and all finish.
TEST(Scheduler, KeepsAccountOfEveryUnit) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<int>(uniform(seed, draws++, 0) * end); };
    SchedulerConfig config = config_of(12 + below(20), 1 + below(5), 8 * (1 + below(3)));
    config.policy = static_cast<SchedulePolicy>(below(3));
    config.aging_period = 1 + below(4);
    config.radix_cache = below(5) > 0;
    config.snapshot_interval_tokens = 1 + below(30);
    add_random_classes(config, below);
    Scheduler scheduler(config);
    StepPlan plan;
    auto step = [&] {
      if (below(6) == 0) scheduler.cancel(static_cast<SequenceId>(below(60)));
      while (scheduler.remove_cancelled() != nullptr) {
      }
      scheduler.plan(plan);
      int64_t rows = 0;
      for (const PlannedSpan& span : plan.spans) {
        if (span.sequence->pending() > 1) rows += span.count;
      }
      ASSERT_LE(rows, config.prefill_rows_max);
      ASSERT_LE(scheduler.running(), config.running_max);
      ASSERT_TRUE(!plan.spans.empty() || scheduler.waiting() + scheduler.running() == 0);
      finish_step(scheduler, plan);
    };
    for (SequenceId id = 1; id <= 60; ++id) {
      std::vector<TokenId> prompt = numbers(0, below(24));
      for (int own = 1 + below(6); own > 0; --own) prompt.push_back(100 + below(3));
      scheduler.enqueue(sequence_of(id, prompt, 1 + below(16), below(3)));
      if (below(3) > 0) step();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
    while (scheduler.running() + scheduler.waiting() > 0) {
      step();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    }
    scheduler.tree().flush();
    for (int c = 0; c < config.classes.count; ++c) {
      EXPECT_EQ(scheduler.tree().use(c).free, config.units[static_cast<size_t>(c)])
          << "seed " << seed << ", " << describe(config.classes[c]);
    }
  }
}

}  // namespace
}  // namespace banyan::scheduler_test
