#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace banyan {
namespace {

std::unique_ptr<Sequence> sequence_of(SequenceId id, int64_t prompt, int64_t tokens_max) {
  auto s = std::make_unique<Sequence>();
  s->id = id;
  s->tokens.assign(static_cast<size_t>(prompt), 1);
  s->prompt_tokens = prompt;
  s->tokens_max = tokens_max;
  return s;
}

// Computes what was planned and gives every complete sequence one token.
void carry_out(const StepPlan& plan) {
  for (const PlannedSpan& span : plan.spans) {
    Sequence& s = *span.sequence;
    ASSERT_EQ(span.first, s.computed);
    ASSERT_LE(span.first + span.count, static_cast<int64_t>(s.tokens.size()));
    s.computed += span.count;
    if (s.pending() == 0) s.tokens.push_back(1);
  }
}

TEST(Scheduler, ServesSequencesThatNeedOneRowFirst) {
  Scheduler scheduler(100, 4, 4, 16);
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, 10, 40));
  scheduler.plan(plan);
  carry_out(plan);
  scheduler.enqueue(sequence_of(2, 40, 60));
  scheduler.enqueue(sequence_of(3, 1, 9));
  scheduler.plan(plan);
  ASSERT_EQ(plan.spans.size(), 3u);
  EXPECT_EQ(plan.spans[0].sequence->id, 1u);
  EXPECT_EQ(plan.spans[1].sequence->id, 3u);
  EXPECT_EQ(plan.spans[2].sequence->id, 2u);
  EXPECT_EQ(plan.spans[2].count, 14) << "the rest of 16 rows";
}

TEST(Scheduler, AdmitsInOrderAndOnlyWhatFitsWhole) {
  Scheduler scheduler(10, 4, 8, 64);
  StepPlan plan;
  scheduler.enqueue(sequence_of(1, 4, 24));  // 6 pages
  scheduler.enqueue(sequence_of(2, 4, 20));  // 5 pages: must wait
  scheduler.enqueue(sequence_of(3, 4, 4));   // would fit, but came later
  scheduler.plan(plan);
  EXPECT_EQ(scheduler.running(), 1);
  EXPECT_EQ(scheduler.pages_free(), 4);
  scheduler.remove(plan.spans[0].sequence);
  scheduler.plan(plan);
  EXPECT_EQ(scheduler.running(), 2);
  EXPECT_EQ(scheduler.pages_free(), 4);
}

// Random arrivals, ends and cancellations: each page is in exactly one place, no sequence is longer
// than its pages, and the step's rows are not exceeded.
TEST(Scheduler, KeepsAccountOfEveryPage) {
  constexpr int64_t kPages = 30;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    uint64_t draws = 0;
    auto below = [&](int end) { return static_cast<int64_t>(uniform(seed, draws++, 0) * end); };
    Scheduler scheduler(kPages, 4, 5, 9);
    StepPlan plan;
    for (SequenceId id = 1; id <= 200; ++id) {
      int64_t prompt = 1 + below(30);
      if (below(2) == 0) scheduler.enqueue(sequence_of(id, prompt, prompt + below(40)));
      if (below(4) == 0) scheduler.cancel(static_cast<SequenceId>(below(static_cast<int>(id) + 1)));
      while (auto cancelled = scheduler.remove_cancelled()) EXPECT_TRUE(cancelled->pages.empty());
      scheduler.plan(plan);
      std::set<int32_t> pages;
      int64_t held = 0, rows = 0;
      for (const PlannedSpan& span : plan.spans) {
        const Sequence& s = *span.sequence;
        held += static_cast<int64_t>(s.pages.size());
        pages.insert(s.pages.begin(), s.pages.end());
        rows += span.count;
        ASSERT_LE(static_cast<int64_t>(s.tokens.size()), 4 * static_cast<int64_t>(s.pages.size()));
      }
      ASSERT_LE(rows, 9);
      ASSERT_EQ(pages.size(), static_cast<size_t>(held)) << "a page with two owners";
      ASSERT_LE(held + scheduler.pages_free(), kPages);
      if (static_cast<int64_t>(plan.spans.size()) == scheduler.running()) {
        ASSERT_EQ(held + scheduler.pages_free(), kPages) << "seed " << seed;
      }
      ASSERT_TRUE(!plan.spans.empty() || scheduler.waiting() + scheduler.running() == 0);
      carry_out(plan);
      for (const PlannedSpan& span : plan.spans) {
        Sequence& s = *span.sequence;
        if (static_cast<int64_t>(s.tokens.size()) > s.tokens_max) scheduler.remove(&s);
      }
    }
  }
}

}  // namespace
}  // namespace banyan
