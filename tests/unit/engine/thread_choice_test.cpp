// Threads of steps on a machine that others use too, in simulated steps.
#include "engine/thread_choice.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/random.h"

namespace banyan::thread_choice_test {
namespace {

using StepTime = std::function<double(int threads, int64_t rows)>;

// Runs steps whose times vary by a tenth; returns their time.
double run(ThreadChoice& choice, int steps, int64_t rows, const StepTime& time) {
  static uint64_t draws = 0;
  double all = 0;
  for (int i = 0; i < steps; ++i) {
    double taken = time(choice.threads_for(rows), rows) * (0.95 + 0.1 * uniform(3, draws++, 0));
    choice.observe(rows, taken);
    all += taken;
  }
  return all;
}

double shared(int threads, int64_t) {
  return threads == 1 ? 0.02 : 0.03;  // waits for the one that has no processor
}

double alone(int threads, int64_t) {
  return 0.02 / threads;
}

TEST(ThreadChoice, UsesAllWhileNobodyElseDoes) {
  ThreadChoice choice(2);
  choice.set_free(1.85);
  run(choice, 300, 1, shared);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(choice.threads_for(1), 2);
    run(choice, 1, 1, shared);
  }
}

TEST(ThreadChoice, FallsBackWhereFewerAreFasterAndBackAgain) {
  ThreadChoice choice(2);
  choice.set_free(0.5);
  run(choice, 40, 1, shared);
  double time = run(choice, 2000, 1, shared);
  EXPECT_LT(time, 1.03 * 2000 * 0.02) << "trials included";
  time = run(choice, 3000, 1, alone);
  EXPECT_LT(time, 1.15 * 3000 * 0.01) << "others still run, but do not disturb";
  run(choice, 2000, 1, shared);
  choice.set_free(2);
  EXPECT_EQ(choice.threads_for(1), 2);
}

TEST(ThreadChoice, TriesFewRowsAndManyOnTheirOwn) {
  ThreadChoice choice(2);
  choice.set_free(0);
  auto time = [](int threads, int64_t rows) {
    return rows < 4 ? shared(threads, rows) : 10 * alone(threads, rows);
  };
  double few = 0, many = 0;
  for (int i = 0; i < 400; ++i) {
    few += run(choice, 10, 1, time);
    many += run(choice, 1, 512, time);
  }
  EXPECT_LT(few, 1.04 * 4000 * 0.02);
  EXPECT_LT(many, 1.1 * 400 * 0.1);
}

TEST(ThreadChoice, FindsTheBestOfManyThreads) {
  ThreadChoice choice(16);
  choice.set_free(7);
  // Seven processors are left.
  auto time = [](int threads, int64_t) { return threads > 7 ? 0.05 : 0.07 / threads; };
  run(choice, 3000, 1, time);
  double spent = run(choice, 2000, 1, time);
  EXPECT_LT(spent, 1.1 * 2000 * 0.01);
}

// Others that come and go do not begin trials over and over.
TEST(ThreadChoice, RestsBetweenTrialsWhateverOthersDo) {
  ThreadChoice choice(2);
  int fewer = 0;
  for (int i = 0; i < 400; ++i) {
    choice.set_free(i % 2 == 0 ? 1.7 : 2);
    for (int j = 0; j < 40; ++j) {
      fewer += choice.threads_for(1) == 1 ? 1 : 0;
      run(choice, 1, 1, alone);
    }
  }
  EXPECT_GT(fewer, 0);
  EXPECT_LT(fewer, 400 * 40 / 20);
}

// A quota leaves this process fewer threads than there are processors.
TEST(ThreadChoice, ProcessorsBesideAQuotaMayBeBusy) {
  ThreadChoice choice(4);
  choice.set_free(44);
  run(choice, 200, 1, shared);
  EXPECT_EQ(choice.threads_for(1), 4);
}

TEST(ThreadChoice, StepsThatDifferAreNotCompared) {
  ThreadChoice choice(2);
  choice.set_free(0);
  auto time = [](int threads, int64_t rows) { return static_cast<double>(rows) / threads; };
  for (int i = 0; i < 1000; ++i) run(choice, 1, 64 + i % 64, time);
  int of_all = 0;
  for (int i = 0; i < 1000; ++i) {
    of_all += choice.threads_for(64) == 2 ? 1 : 0;
    run(choice, 1, 64 + i % 64, time);
  }
  EXPECT_GT(of_all, 900);
}

TEST(ThreadChoice, OneThreadIsAllThereIs) {
  ThreadChoice choice(1);
  choice.set_free(0);
  run(choice, 200, 1, shared);
  EXPECT_EQ(choice.threads_for(1), 1);
}

}  // namespace
}  // namespace banyan::thread_choice_test
