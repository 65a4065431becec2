// A day of mixed load on the scheduler, in simulated time: requests of many lengths that share
// beginnings arrive at random, some are cancelled, some run out of time, and every few hours the
// engine is restarted. Nothing may leak: all units are accounted for throughout, every request ends
// once, and the process does not grow.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "engine/schedule/scheduler.h"
#include "support/sanitized.h"
#include "support/states.h"

namespace banyan::soak_test {
namespace {

constexpr int kParts = test::kSanitized ? 4 : 1;  // of the day, of which one is run
constexpr double kEnd_s = 24 * 3600 / kParts, kStep_s = 0.05, kRestart_s = 3 * 3600;
const StateClasses kClasses = test::classes_of({test::window_state(100), test::slot_state(64)}, 16);
constexpr UnitCounts kUnits = {800, 500, 40};
// Requests per second, in turns of ten minutes.
double arrival_rate(double now_s) {
  return std::fmod(now_s, 1200) < 600 ? 0.4 : 2.4;
}

class Soak {
 public:
  void run() {
    int64_t restarts = 0;
    std::vector<size_t> heap_bytes;  // in use after each restart
    for (double now = 0; now < kEnd_s; now += kStep_s) {
      if (now >= static_cast<double>(restarts) * kRestart_s) {
        restart();
        ++restarts;
        heap_bytes.push_back(mallinfo2().uordblks);
      }
      now_s_ = now;
      arrive();
      step();
      if (testing::Test::HasFatalFailure()) return;
      // An idle hour passes at once.
      if (scheduler_->running() + scheduler_->waiting() == 0) now = std::max(now, next_arrival_s_);
    }
    finish();
    EXPECT_EQ(restarts, 8 / kParts);
    EXPECT_EQ(submitted_, ended_);
    EXPECT_GT(submitted_, 80'000 / kParts);
    EXPECT_GT(cancelled_, 1000 / kParts);
    EXPECT_GT(expired_, 100 / kParts);
    EXPECT_GT(retracted_, 20 / kParts);
    EXPECT_GT(cached_tokens_, 1'000'000 / kParts);
    EXPECT_LE(heap_bytes.back(), heap_bytes[1] + (64 << 10)) << "the process grows";
  }

 private:
  double real() { return uniform(42, draws_++, 0); }
  int below(int end) { return static_cast<int>(real() * end); }

  // Discards everything that runs or waits, as the end of a process does.
  void restart() {
    finish();
    scheduler_ = std::make_unique<Scheduler>(SchedulerConfig{.policy = SchedulePolicy::kLpm,
                                                             .running_max = 24,
                                                             .prefill_rows_max = 512,
                                                             .snapshot_interval_tokens = 256,
                                                             .classes = kClasses,
                                                             .units = kUnits});
  }

  void finish() {
    if (scheduler_ == nullptr) return;
    retracted_ += scheduler_->retracted();
    cached_tokens_ += scheduler_->cached_tokens();
    while (Sequence* s = scheduler_->any()) end(scheduler_->remove(s));
    scheduler_->check();
    scheduler_->tree().flush();
    for (int c = 0; c < kClasses.count; ++c) {
      EXPECT_EQ(scheduler_->tree().use(c).free, kUnits[static_cast<size_t>(c)]);
    }
    scheduler_.reset();
  }

  void end(std::unique_ptr<Sequence> s) {
    ASSERT_NE(s, nullptr);
    for (const Sequence::Held& held : s->held_units) ASSERT_TRUE(held.units.empty());
    ++ended_;
  }

  void arrive() {
    for (; next_arrival_s_ <= now_s_;
         next_arrival_s_ += -std::log(1 - real()) / arrival_rate(now_s_)) {
      auto s = std::make_unique<Sequence>();
      s->id = static_cast<SequenceId>(++submitted_);
      int family = below(20), shared = below(800), own = 1 + below(200), output = 1 + below(400);
      if (below(50) == 0) own += 4000;
      for (int i = 0; i < shared; ++i) s->tokens.push_back(family * 10'000 + i);
      for (int i = 0; i < own; ++i) s->tokens.push_back(1'000'000 + below(1'000'000));
      s->prompt_tokens = shared + own;
      s->tokens_max = s->prompt_tokens + output;
      s->tokens.reserve(static_cast<size_t>(s->tokens_max));
      if (below(20) == 0) s->deadline_ns = static_cast<int64_t>((now_s_ + 5 * real()) * 1e9);
      if (below(3) == 0) s->name_space.salt = std::to_string(below(3));
      scheduler_->enqueue(std::move(s));
      if (below(12) == 0) scheduler_->cancel(static_cast<SequenceId>(submitted_ - below(40)));
    }
  }

  void step() {
    for (; auto s = scheduler_->remove_cancelled(); ++cancelled_) end(std::move(s));
    for (; auto s = scheduler_->remove_expired(static_cast<int64_t>(now_s_ * 1e9)); ++expired_) {
      end(std::move(s));
    }
    scheduler_->plan(plan_);
    bool idle = scheduler_->running() + scheduler_->waiting() == 0;
    ASSERT_TRUE(idle || !plan_.spans.empty());
    scheduler_->commit(plan_);
    for (const PlannedSpan& span : plan_.spans) {
      Sequence& s = *span.sequence;
      if (s.pending() > 0) continue;
      if (s.length() == s.tokens_max) {
        end(scheduler_->remove(&s));
      } else {
        s.tokens.push_back(below(50));
      }
    }
    if (++steps_ % 5000 == 0) scheduler_->check();
  }

  std::unique_ptr<Scheduler> scheduler_;
  StepPlan plan_;
  uint64_t draws_ = 0;
  double now_s_ = 0, next_arrival_s_ = 0;
  int64_t steps_ = 0, submitted_ = 0, ended_ = 0, cancelled_ = 0, expired_ = 0, retracted_ = 0;
  int64_t cached_tokens_ = 0;
};

TEST(Soak, ADayOfMixedLoadLeaksNothing) {
  Soak().run();
}

}  // namespace
}  // namespace banyan::soak_test
