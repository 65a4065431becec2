// The disk store on a failing device, and in a process that is killed.
//
//   BANYAN_KILLS=1000 unit_tests --gtest_filter=DiskKill.*     runs that many rounds
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "support/shared.h"
#include "support/tier/fault_storage.h"
#include "support/tier/tier_rig.h"

namespace banyan::disk_faults_test {
namespace {

using test::disk_config;
using test::FaultPlan;
using test::FaultStorage;
using test::tier_states;
using test::TierRig;

constexpr int64_t kNumbers = 60;  // of records; some 45 fit

// Random finds, reads and writes; every successful read is correct.
void work(TierRig& rig, uint64_t seed, int operations, std::atomic<int>* begun = nullptr) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < operations; ++i) {
    if (begun != nullptr) ++*begun;
    auto number = static_cast<int64_t>(random() % kNumbers);
    int unit_class = random() % 4 == 0;
    bool aligned = random() % 2 == 0;
    switch (random() % 8) {
      case 0:
        (void)rig.find(number, unit_class);
        break;
      case 1:
        rig.touch(number, unit_class);
        break;
      case 2:
      case 3:
      case 4:
        (void)rig.read(number, unit_class, aligned);
        break;
      case 5:
        if (random() % 8 == 0) rig.store().sync();
        break;
      default:
        (void)rig.write(number, unit_class, aligned);
        break;
    }
  }
}

int read_all(TierRig& rig) {
  int there = 0;
  for (int64_t n = 0; n < kNumbers; ++n) {
    for (int c : {0, 1}) there += rig.read(n, c, n % 2 == 0) == TierOutcome::kDone;
  }
  return there;
}

TEST(DiskFaults, NoFaultGivesAWrongByte) {
  const std::vector<FaultPlan> plans = {
      {.short_moves = 0.3},
      {.read_errors = 0.02, .delays = 0.1},
      {.torn_writes = 0.2, .flipped_reads = 0.05, .flipped_writes = 0.1},
      {.short_moves = 0.2, .flipped_reads = 0.2, .flipped_writes = 0.2, .delays = 0.05},
      {.short_moves = 0.1, .read_errors = 0.01, .write_errors = 0.003, .torn_writes = 0.1},
  };
  for (size_t p = 0; p < plans.size(); ++p) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      test::TemporaryFolder folder;
      FaultStorage storage(seed);
      TierRig rig(disk_config(folder.path(), 1 << 20), tier_states(), storage);
      storage.set(plans[p]);
      work(rig, seed, 150);
      storage.set({});
      rig.reopen();
      work(rig, seed + 100, 50);
      EXPECT_EQ(rig.wrong(), 0) << "plan " << p << ", seed " << seed;
      EXPECT_EQ(rig.store().stats().health, TierHealth::kOn);
      EXPECT_GT(read_all(rig), 0);
    }
  }
}

TEST(DiskFaults, ShortWritesAreGoneOnWith) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  storage.set({.short_moves = 0.7});
  for (int64_t n = 0; n < 20; ++n) {
    EXPECT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
    EXPECT_EQ(rig.read(n, n % 2), TierOutcome::kDone);
  }
  EXPECT_EQ(rig.wrong(), 0);
}

// Pieces of what was written since the last sync are lost, in no order.
TEST(DiskFaults, ALossOfPowerGivesNoWrongByte) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    test::TemporaryFolder folder;
    FaultStorage storage(seed);
    TierRig rig(disk_config(folder.path(), 1 << 20), tier_states(), storage);
    for (uint64_t round = 0; round < 3; ++round) {
      work(rig, seed * 10 + round, 120);
      storage.set({.off = true});  // or closing would sync
      rig.close();
      storage.set({});
      storage.lose_power();
      rig.reopen();
      ASSERT_EQ(rig.store().stats().health, TierHealth::kOn);
      (void)read_all(rig);
      ASSERT_EQ(rig.wrong(), 0) << "seed " << seed << ", round " << round;
    }
  }
}

TEST(DiskFaults, WhatWasSyncedSurvivesALossOfPower) {
  test::TemporaryFolder folder;
  FaultStorage storage(5);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  for (int64_t n = 0; n < 30; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.store().sync();
  storage.lose_power();
  rig.reopen();
  for (int64_t n = 0; n < 30; ++n) EXPECT_EQ(rig.read(n), TierOutcome::kDone);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskFaults, AFullDiskLeavesWhatIsThere) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  ASSERT_EQ(rig.write(1), TierOutcome::kDone);
  storage.set({.full = true});
  EXPECT_EQ(rig.write(2), TierOutcome::kFailed);
  TierStats stats = rig.store().stats();
  EXPECT_EQ(stats.health, TierHealth::kReadOnly);
  EXPECT_NE(stats.trouble.find("No space left"), std::string::npos) << stats.trouble;
  EXPECT_EQ(rig.write(3), TierOutcome::kRefused);
  EXPECT_EQ(rig.read(1), TierOutcome::kDone);
  storage.set({});
  rig.reopen();
  EXPECT_EQ(rig.read(1), TierOutcome::kDone);
  EXPECT_EQ(rig.write(2), TierOutcome::kDone);
}

// A disk with room for some slabs is used as far as it goes.
TEST(DiskFaults, ADiskThatIsTooSmallIsWrittenOver) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  storage.set({.room = 600 << 10});
  TierRig rig(disk_config(folder.path(), 64 << 20), tier_states(), storage);
  for (int64_t n = 0; n < 60; ++n) EXPECT_EQ(rig.write(n), TierOutcome::kDone);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOn);
  EXPECT_EQ(rig.store().stats().units[0], 32);  // two slabs of sixteen
  EXPECT_EQ(rig.read(59), TierOutcome::kDone);
}

TEST(DiskFaults, ADeviceThatIsNotWritableAtTheStartIsNoError) {
  for (int error : {EROFS, EIO, ENOSPC}) {
    test::TemporaryFolder folder;
    FaultStorage storage(1);
    storage.set({.every_change = error});
    TierRig rig(disk_config(folder.path() + "/cache"), tier_states(), storage);
    EXPECT_EQ(rig.store().stats().health, TierHealth::kOff) << error;
    EXPECT_FALSE(rig.find(1));
    EXPECT_EQ(rig.read(1), TierOutcome::kFailed);
    EXPECT_EQ(rig.write(1), TierOutcome::kRefused);
    rig.store().sync();
    rig.store().clear();
  }
}

TEST(DiskFaults, ADeviceThatCannotReadIsGivenUp) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  for (int64_t n = 0; n < 10; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  storage.set({.read_errors = 1});
  for (int64_t n = 0; n < 5; ++n) EXPECT_EQ(rig.read(n), TierOutcome::kFailed);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOff);
}

// A slot that could not be read is not considered empty.
TEST(DiskFaults, HeadersThatCannotBeReadStayWhatTheyAre) {
  test::TemporaryFolder folder;
  FaultStorage storage(3);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  for (int64_t n = 0; n < 10; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.close();
  std::string digest = tier_states().digest.value().hex();
  ASSERT_TRUE(std::filesystem::remove(folder.path() + "/" + digest + "/class0.idx"));
  storage.set({.read_errors = 0.5});
  rig.reopen();
  rig.store().sync();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  storage.set({});
  rig.reopen();
  for (int i = 0; i < 500 && rig.store().stats().units[0] < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int64_t n = 0; n < 10; ++n) EXPECT_EQ(rig.read(n), TierOutcome::kDone) << n;
}

TEST(DiskFaults, ARecordThatCannotBeReadIsPutAside) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  TierRig rig(disk_config(folder.path()), tier_states(), storage);
  for (int64_t n = 0; n < 10; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  storage.set({.read_errors = 1});
  EXPECT_EQ(rig.read(3), TierOutcome::kFailed);
  EXPECT_EQ(rig.read(3), TierOutcome::kAbsent);
  storage.set({});
  rig.reopen();
  EXPECT_EQ(rig.read(3), TierOutcome::kDone);
}

// --- killed ------------------------------------------------------------------------------------

// Memory that a process shares with those that it forks.
std::atomic<int>* shared_count() {
  void* memory = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) std::atomic<int>(0);
}

// Runs `body` in a process of its own, and kills it `after` it has begun so many operations; false:
// it was killed.
template <class Body>
bool run_child(Body body, std::atomic<int>& begun, int operations,
               std::chrono::microseconds after) {
  begun = 0;
  pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (begun >= operations) {
      std::this_thread::sleep_for(after);
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return WIFEXITED(status);
}

int64_t kills(int64_t by_default) {
  const char* text = std::getenv("BANYAN_KILLS");
  return text == nullptr ? by_default : std::atoll(text);
}

// Opens the folder of a process that was killed: the start succeeds and no byte is wrong.
int check_survivor(const TierConfig& config) {
  TierRig rig(config, tier_states());
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOn) << rig.store().stats().trouble;
  int there = read_all(rig);
  EXPECT_EQ(rig.wrong(), 0);
  EXPECT_EQ(rig.write(kNumbers + 1), TierOutcome::kDone);
  EXPECT_EQ(rig.read(kNumbers + 1), TierOutcome::kDone);
  return there;
}

TEST(DiskKill, AtAnyTimeLeavesNoWrongByte) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path(), 1 << 20);
  std::mt19937_64 random(1);
  std::atomic<int>& begun = *shared_count();
  int64_t there = 0, rounds = kills(25);
  for (int64_t round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    uint64_t seed = random();
    auto operations = static_cast<int>(random() % 100);  // 0: perhaps while it opens
    auto after = std::chrono::microseconds(random() % 3000);
    run_child(
        [&] {
          TierRig rig(config, tier_states());
          work(rig, seed, 100000, &begun);
        },
        begun, operations, after);
    there += check_survivor(config);
  }
  EXPECT_GT(there, rounds);  // what was written before is mostly there
}

// In the middle of each change of a file or a name, from the first on.
TEST(DiskKill, InTheMiddleOfEveryChangeLeavesNoWrongByte) {
  test::TemporaryFolder folder;
  std::atomic<int>& begun = *shared_count();
  int64_t step = std::max<int64_t>(1, 400 / kills(40)), rounds = 0;
  for (int64_t change = 0; !testing::Test::HasFailure(); change += change < 16 ? 1 : step) {
    TierConfig config = disk_config(fmt::format("{}/{}", folder.path(), change % 8), 1 << 20);
    bool ended = run_child(
        [&] {
          FaultStorage storage(static_cast<uint64_t>(change));
          storage.set({.kill_at = change});
          TierRig rig(config, tier_states(), storage);
          work(rig, static_cast<uint64_t>(change), 200);
        },
        begun, INT_MAX, std::chrono::microseconds(0));
    (void)check_survivor(config);
    ++rounds;
    if (ended || change > 400) break;
  }
  EXPECT_GT(rounds, 20);
}

}  // namespace
}  // namespace banyan::disk_faults_test
