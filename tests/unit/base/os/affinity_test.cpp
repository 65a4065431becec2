// Pinning workers to processors. The tests use the processors that this process may use.
#include "base/os/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <mutex>
#include <set>

namespace banyan::affinity_test {
namespace {

int processors_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

TEST(Affinity, WorkersOfAFullPoolHaveAProcessorEachAndTheDriverStaysFree) {
  int before = processors_allowed();
  ThreadPool pool(before);
  bool pinned = pin_workers(pool);
  std::mutex mutex;
  std::multiset<int> places;
  pool.run([&](int worker) {
    std::lock_guard lock(mutex);
    if (worker == 0) return;
    EXPECT_EQ(processors_allowed(), pinned ? 1 : before);
    if (pinned) places.insert(::sched_getcpu());
  });
  for (int place : places) EXPECT_EQ(places.count(place), 1u);
  EXPECT_EQ(processors_allowed(), before);
}

TEST(Affinity, SharesArePartsOfTheProcessorsAndEndWithTheirScope) {
  int before = processors_allowed();
  for (int count : {1, 2, 3}) {
    int sum = 0;
    for (int index = 0; index < count; ++index) {
      ProcessorShare share(index, count);
      sum += processors_allowed();
    }
    EXPECT_EQ(sum, before >= count ? before : count * before);
  }
  EXPECT_EQ(processors_allowed(), before);
}

TEST(Affinity, ADriverThatMeetsAWorkerGoesElsewhere) {
  int processors = processors_allowed();
  ThreadPool pool(processors);
  if (!pin_workers(pool)) GTEST_SKIP() << "one processor, or a busy machine";
  int worker_place = -1, driver_place = -1;
  pool.run([&](int worker) {
    if (worker == 1) worker_place = ::sched_getcpu();
  });
  cpu_set_t before, there;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&there);
  CPU_SET(worker_place, &there);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(there), &there), 0);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
  pool.run([&](int worker) {
    if (worker == 0) driver_place = ::sched_getcpu();
  });
  EXPECT_NE(driver_place, worker_place);
  EXPECT_EQ(processors_allowed(), processors);
}

TEST(Affinity, APoolOfAnotherSizeIsLeftAlone) {
  ThreadPool one(1), more(processors_allowed() + 1);
  EXPECT_FALSE(pin_workers(one));
  EXPECT_FALSE(pin_workers(more));
}

TEST(Affinity, RunnableThreadsOfALoadLine) {
  EXPECT_EQ(runnable_threads("0.20 0.18 0.12 1/80 11206"), 1);
  EXPECT_EQ(runnable_threads("10.20 0.18 0.12 37/800 11206\n"), 37);
  EXPECT_EQ(runnable_threads(""), -1);
  EXPECT_EQ(runnable_threads("0.20 0.18"), -1);
  EXPECT_EQ(runnable_threads("0.20 x/80"), -1);
}

}  // namespace
}  // namespace banyan::affinity_test
