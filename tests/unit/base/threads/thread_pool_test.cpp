// The thread pool: shares, barriers, sleeping workers. Races show up under the thread sanitizer.
#include "base/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <new>
#include <set>

namespace banyan::thread_pool_test {
namespace {

class ThreadPoolOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Workers, ThreadPoolOf, ::testing::Values(1, 2, 3, 4));

TEST_P(ThreadPoolOf, RunsTheJobOnceOnEveryWorker) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  std::mutex mutex;
  std::multiset<int> workers;
  std::set<std::thread::id> threads;
  pool.run([&](int worker) {
    std::lock_guard lock(mutex);
    workers.insert(worker);
    threads.insert(std::this_thread::get_id());
    if (worker == 0) {
      threads.insert(std::thread::id());  // a mark that the caller took part
    }
  });
  std::multiset<int> expected;
  for (int worker = 0; worker < GetParam(); ++worker) expected.insert(worker);
  EXPECT_EQ(workers, expected);
  EXPECT_EQ(threads.size(), static_cast<size_t>(GetParam()) + 1);
  EXPECT_TRUE(threads.contains(std::this_thread::get_id()));
}

TEST_P(ThreadPoolOf, SharesCoverEveryIndexOnceAndStartAtMultiplesOfTheGrain) {
  ThreadPool pool(GetParam());
  for (int64_t grain : {1, 3, 16}) {
    for (int64_t count : {0, 1, 2, 3, 5, 16, 17, 100}) {
      std::vector<int> calls(count);
      std::atomic<int> shares = 0, misaligned = 0;
      pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
        ++shares;
        if (begin % grain != 0 || begin >= end || (end % grain != 0 && end != count)) ++misaligned;
        for (int64_t i = begin; i < end; ++i) ++calls[i];  // shares are disjoint: no race
      });
      EXPECT_EQ(calls, std::vector<int>(count, 1)) << count << " by " << grain;
      EXPECT_LE(shares, GetParam());
      EXPECT_EQ(misaligned, 0) << count << " by " << grain;
    }
  }
}

// The other workers may be at a barrier, so that no exception can be passed on.
TEST(ThreadPool, EndsTheProcessIfAWorkerRunsOutOfMemory) {
  EXPECT_EXIT(
      {
        ThreadPool pool(2);
        pool.run([&](int worker) {
          if (worker == 1) throw std::bad_alloc();
          pool.barrier();
        });
      },
      testing::ExitedWithCode(1), "banyan: out of memory: ");
}

// Workers that left and came back miss no job and run none twice.
TEST_P(ThreadPoolOf, RunsJobsOnAsManyWorkersAsAreUsed) {
  ThreadPool pool(GetParam());
  uint32_t random = 1;
  for (int i = 0; i < 2000; ++i) {
    random = random * 1664525 + 1013904223;
    int used = 1 + static_cast<int>((random >> 16) % static_cast<uint32_t>(GetParam()));
    pool.use(used);
    ASSERT_EQ(pool.size(), used);
    ASSERT_EQ(pool.workers(), GetParam());
    for (int job = 0; job < i % 3; ++job) {
      std::vector<int> runs(static_cast<size_t>(GetParam()));
      std::atomic<int> arrived = 0, late = 0;
      pool.run([&](int worker) {
        ++runs[static_cast<size_t>(worker)];
        ++arrived;
        pool.barrier();
        if (arrived != used) ++late;
      });
      for (int worker = 0; worker < GetParam(); ++worker) {
        ASSERT_EQ(runs[static_cast<size_t>(worker)], worker < used ? 1 : 0) << i << ' ' << used;
      }
      ASSERT_EQ(late, 0);
    }
  }
}

TEST_P(ThreadPoolOf, EndsWhileWorkersSleep) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(GetParam());
    pool.use(1);
    if (i % 2 == 0) pool.use(GetParam());
  }
}

// Shares are static: the same split each time, however the workers are timed.
TEST_P(ThreadPoolOf, SplitsTheSameWayEveryTime) {
  ThreadPool pool(GetParam());
  auto split = [&] {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> shares;
    pool.parallel_for(1000, 7, [&](int64_t begin, int64_t end) {
      std::lock_guard lock(mutex);
      shares.emplace(begin, end);
    });
    return shares;
  };
  auto first = split();
  EXPECT_EQ(first.size(), static_cast<size_t>(GetParam()));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(split(), first);
}

// What one job wrote without synchronisation of its own, the next and the caller can read.
TEST_P(ThreadPoolOf, ManyTinyJobsSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  constexpr int kJobs = 20000;
  std::vector<int64_t> counts(GetParam());
  int64_t previous = 0;
  for (int job = 0; job < kJobs; ++job) {
    pool.run([&](int worker) {
      int other = (worker + job) % GetParam();
      counts[other] += previous == job * int64_t{GetParam()} ? 1 : 1000000;
    });
    previous = 0;
    for (int64_t count : counts) previous += count;
  }
  EXPECT_EQ(previous, int64_t{kJobs} * GetParam());
}

// After each barrier every worker sees what all others wrote before it.
TEST_P(ThreadPoolOf, BarriersSeparateThePhasesOfAJob) {
  ThreadPool pool(GetParam());
  constexpr int kJobs = 50, kPhases = 200;
  for (int job = 0; job < kJobs; ++job) {
    std::vector<int64_t> written(GetParam());
    std::vector<int> wrong(GetParam());
    pool.run([&](int worker) {
      for (int phase = 1; phase <= kPhases; ++phase) {
        written[worker] = phase;
        pool.barrier();
        for (int64_t value : written) wrong[worker] += value != phase;
        pool.barrier();
      }
    });
    EXPECT_EQ(wrong, std::vector<int>(GetParam())) << "job " << job;
  }
}

TEST_P(ThreadPoolOf, BarriersWaitForALateWorkerAsleep) {
  ThreadPool pool(GetParam());
  std::vector<int> done(GetParam());
  pool.run([&](int worker) {
    for (int late = 0; late < GetParam(); ++late) {
      if (worker == late) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // far beyond the spinning
        done[late] = 1;
      }
      pool.barrier();
      EXPECT_EQ(done[late], 1);
    }
  });
}

TEST_P(ThreadPoolOf, WakesAfterItHasGoneToSleep) {
  ThreadPool pool(GetParam());
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far beyond the spinning
    std::atomic<int> ran = 0;
    pool.run([&](int) { ++ran; });
    EXPECT_EQ(ran, GetParam());
  }
}

TEST_P(ThreadPoolOf, StopsWhileAsleepOrUnused) {
  for (int i = 0; i < 20; ++i) {
    ThreadPool unused(GetParam());
  }
  ThreadPool asleep(GetParam());
  asleep.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

TEST(UsableProcessors, AtLeastOne) {
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), 1 << 16);
}

}  // namespace
}  // namespace banyan::thread_pool_test
