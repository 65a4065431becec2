// The disk store on a healthy disk: restarts, eviction, shares and limits. disk_faults_test.cpp
// covers failures.
#include "tier/disk/disk_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "support/shared.h"
#include "support/tier/tier_rig.h"
#include "tier/disk/room.h"

namespace banyan::disk_store_test {
namespace {

namespace fs = std::filesystem;
using test::disk_config;
using test::tier_states;
using test::TierRig;

std::string digest_folder(const std::string& folder, const std::string& model = "model") {
  return folder + "/" + tier_states(model).digest.value().hex();
}

int64_t bytes_below(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat info{};
    if (::lstat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      bytes += int64_t{info.st_blocks} * 512;
    }
  }
  return bytes;
}

// Waits until background work has had its time; the condition says when.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 500; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(DiskStore, ReadsWhatItWrote) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  for (bool aligned : {true, false}) {
    for (int unit_class : {0, 1}) {
      int64_t number = aligned ? 1 : 2;
      EXPECT_FALSE(rig.find(number, unit_class));
      EXPECT_EQ(rig.read(number, unit_class, aligned), TierOutcome::kAbsent);
      EXPECT_EQ(rig.write(number, unit_class, aligned), TierOutcome::kDone);
      EXPECT_TRUE(rig.find(number, unit_class));
      EXPECT_EQ(rig.read(number, unit_class, aligned), TierOutcome::kDone);
      EXPECT_EQ(rig.read(number, unit_class, !aligned), TierOutcome::kDone);
    }
  }
  EXPECT_EQ(rig.wrong(), 0);
  TierStats stats = rig.store().stats();
  EXPECT_EQ(stats.units[0], 2);
  EXPECT_EQ(stats.bytes[0], 2 * 16384);
  EXPECT_EQ(stats.units[1], 2);
}

TEST(DiskStore, KeepsWhatItWroteOverARestart) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 20; ++n) ASSERT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
  rig.reopen();
  for (int64_t n = 0; n < 20; ++n) {
    EXPECT_TRUE(rig.find(n, n % 2));
    EXPECT_EQ(rig.read(n, n % 2), TierOutcome::kDone);
  }
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskStore, OnlyItsOwnerMayReadIt) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path() + "/a/b"), tier_states());
  ASSERT_EQ(rig.write(1), TierOutcome::kDone);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    auto others = fs::perms::group_all | fs::perms::others_all;
    EXPECT_EQ(entry.status().permissions() & others, fs::perms::none) << entry.path();
  }
}

TEST(DiskStore, WritesWhatItHasOnce) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  test::TierUnit unit(tier_states(), 1, 0);
  unit.fill();
  rig.store().write(unit.job(1));
  EXPECT_EQ(rig.wait_for(1).work[0].bytes, 16384);
  rig.store().write(unit.job(2));
  EXPECT_EQ(rig.wait_for(2).work[0].bytes, 0);
  EXPECT_EQ(rig.store().stats().units[0], 1);
}

TEST(DiskStore, GivesUpWhatWasUsedLongestAgo) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path(), 1 << 20);
  TierRig rig(config, tier_states());
  int64_t capacity = 0;
  while (rig.store().stats().evicted_units == 0) {
    ASSERT_EQ(rig.write(capacity++), TierOutcome::kDone);
    rig.touch(0);
    ASSERT_LT(capacity, 100);
  }
  EXPECT_GT(capacity, 25);  // of 32 in half a MiB, less its sixteenth
  EXPECT_TRUE(rig.find(0));
  EXPECT_FALSE(rig.find(1));
  EXPECT_TRUE(rig.find(2));
  EXPECT_LE(bytes_below(folder.path()), config.size_bytes);
  for (int64_t n = 100; n < 300; ++n) ASSERT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
  EXPECT_LE(bytes_below(folder.path()), config.size_bytes);
  EXPECT_TRUE(rig.find(299, 1));
  rig.reopen();  // the order of use is kept
  rig.touch(299, 1);
  EXPECT_EQ(rig.read(299, 1), TierOutcome::kDone);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskStore, WhatBelongsToAPageGoesWithIt) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path(), 1 << 20), tier_states());
  ASSERT_EQ(rig.write(0, 1), TierOutcome::kDone);
  for (int64_t n = 0; rig.store().stats().evicted_units == 0; ++n) {
    EXPECT_TRUE(rig.find(0, 1));
    ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  }
  EXPECT_FALSE(rig.find(0));
  EXPECT_FALSE(rig.find(0, 1));
  EXPECT_EQ(rig.store().stats().evicted_units, 2);
}

// In the second of one touch, the path's order is that of its ends.
TEST(DiskStore, AfterARestartLeavesGoBeforeTheirParents) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path(), 1 << 20), tier_states());
  int64_t count = 0;
  while (rig.store().stats().evicted_units == 0) ASSERT_EQ(rig.write(count++), TierOutcome::kDone);
  for (int64_t n = count; n-- > 0;) rig.touch(n);
  rig.reopen();
  ASSERT_EQ(rig.write(1000), TierOutcome::kDone);
  ASSERT_EQ(rig.write(1001), TierOutcome::kDone);
  EXPECT_FALSE(rig.find(count - 1));
  EXPECT_FALSE(rig.find(count - 2));
  EXPECT_TRUE(rig.find(1));
}

TEST(DiskStore, AProcessHasAFolderAlone) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  auto second = make_store(disk_config(folder.path()), tier_states("other"));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process"), std::string::npos);
  EXPECT_EQ(rig.write(1), TierOutcome::kDone);
}

TEST(DiskStore, RefusesAFolderOfSomethingElse) {
  test::TemporaryFolder folder;
  folder.write("letter.txt", "dear");
  auto store = make_store(disk_config(folder.path()), tier_states());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(make_store(disk_config(folder.path() + "/letter.txt"), tier_states()));
  fs::remove(folder.path() + "/letter.txt");
  folder.write("FORMAT", "banyan cache 2\n");
  store = make_store(disk_config(folder.path()), tier_states());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kUnsupported);
}

TEST(DiskStore, RefusesSizesThatMakeNoSense) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path(), 20000);
  EXPECT_FALSE(make_store(config, tier_states()));  // not one record
  config.size_bytes = 0;
  EXPECT_FALSE(make_store(config, tier_states()));
  config = disk_config("");
  EXPECT_FALSE(make_store(config, tier_states()));
  config = disk_config(folder.path());
  config.backend = "tape";
  auto store = make_store(config, tier_states());
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("disk"), std::string::npos);
}

TEST(DiskStore, SnapshotsGetWhatTheyAreGiven) {
  TierConfig config = disk_config("", 1 << 20);
  PerClass<int64_t> half = divide_room(config, tier_states());
  EXPECT_EQ(half[0], half[1]);
  config.slot_fraction = 0.25;
  EXPECT_TRUE(check_division(config, tier_states()));
  EXPECT_EQ(divide_room(config, tier_states())[1], 1 << 18);
  TierStates pages = tier_states();
  pages.unit_bytes[1] = 0;
  EXPECT_NE(check_division(config, pages).error().message.find("nothing to divide"),
            std::string::npos);
  config.slot_fraction = 1;
  EXPECT_FALSE(check_division(config, tier_states()));
}

TEST(DiskStore, AnotherDigestFindsNothingAndTakesTheRoom) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path(), 1 << 20);
  {
    TierRig rig(config, tier_states("old"));
    for (int64_t n = 0; n < 60; ++n) ASSERT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
  }
  TierRig rig(config, tier_states("new"));
  for (int64_t n = 0; n < 60; ++n) EXPECT_FALSE(rig.find(n, n % 2));
  EXPECT_TRUE(fs::exists(digest_folder(folder.path(), "old")));
  for (int64_t n = 0; n < 60; ++n) ASSERT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
  EXPECT_FALSE(fs::exists(digest_folder(folder.path(), "old")));
  EXPECT_LE(bytes_below(folder.path()), config.size_bytes);
  EXPECT_EQ(rig.read(59, 1), TierOutcome::kDone);
}

TEST(DiskStore, ASmallerSizeIsKeptToFromTheStart) {
  test::TemporaryFolder folder;
  {
    TierRig rig(disk_config(folder.path(), 4 << 20), tier_states());
    for (int64_t n = 0; n < 100; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  }
  TierRig rig(disk_config(folder.path(), 1 << 20), tier_states());
  EXPECT_LE(bytes_below(folder.path()), 1 << 20);
  for (int64_t n = 0; n < 100; ++n) (void)rig.read(n);
  EXPECT_EQ(rig.wrong(), 0);
  EXPECT_EQ(rig.write(200), TierOutcome::kDone);
  EXPECT_EQ(rig.read(200), TierOutcome::kDone);
}

TEST(DiskStore, KeepsSoMuchOfTheFileSystemFree) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path());
  config.min_free_bytes = int64_t{1} << 60;
  TierRig rig(config, tier_states());
  EXPECT_EQ(rig.write(1), TierOutcome::kRefused);
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOn);
}

TEST(DiskStore, WritesSoManyBytesADay) {
  // Not over midnight, when a new day begins.
  while (std::time(nullptr) % 86400 > 86400 - 20) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path());
  config.write_budget_bytes_per_day = 5 * 16384;
  TierRig rig(config, tier_states());
  for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(rig.write(n), TierOutcome::kDone);
  rig.reopen();  // which does not begin a new day
  EXPECT_EQ(rig.write(4), TierOutcome::kDone);
  EXPECT_EQ(rig.write(5), TierOutcome::kRefused);
  EXPECT_EQ(rig.write(4), TierOutcome::kDone);  // it is there
}

TEST(DiskStore, ForgetsWhenTold) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 10; ++n) ASSERT_EQ(rig.write(n, n % 2), TierOutcome::kDone);
  rig.store().clear();
  EXPECT_FALSE(rig.find(0));
  EXPECT_EQ(rig.store().stats().units[0], 0);
  EXPECT_EQ(rig.write(3, 1), TierOutcome::kDone);
  fs::remove(digest_folder(folder.path()) + "/class0.idx");  // headers are read, and none is there
  rig.reopen();
  for (int64_t n = 0; n < 10; ++n) EXPECT_EQ(rig.find(n, n % 2), n == 3) << n;
  EXPECT_EQ(rig.read(3, 1), TierOutcome::kDone);
}

TEST(DiskStore, AnIndexThatIsLostIsMadeAgain) {
  for (bool lost : {true, false}) {
    test::TemporaryFolder folder;
    TierRig rig(disk_config(folder.path()), tier_states());
    for (int64_t n = 0; n < 90; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
    rig.close();
    std::string index = digest_folder(folder.path()) + "/class0.idx";
    if (lost) {
      fs::remove(index);
    } else {
      std::ofstream(index, std::ios::binary) << std::string(9000, 'x');
    }
    rig.reopen();
    EXPECT_TRUE(soon([&] { return rig.store().stats().units[0] == 90; }));
    for (int64_t n = 0; n < 90; ++n) EXPECT_EQ(rig.read(n), TierOutcome::kDone);
    EXPECT_EQ(rig.wrong(), 0);
    rig.reopen();
    EXPECT_EQ(rig.store().stats().units[0], 90);
  }
}

// Entries of one record for another, a slab of a minute ago, bytes flipped anywhere.
TEST(DiskStore, DamageIsAMissAndRepairsItself) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 30; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.close();
  std::string slab = digest_folder(folder.path()) + "/class0-00000000.slab";
  {
    std::fstream file(slab, std::ios::binary | std::ios::in | std::ios::out);
    for (int64_t slot = 0; slot < 6; ++slot) {
      file.seekp(slot * 16384 + (slot < 3 ? 40 : 9000));
      file.put('\x55');
    }
  }
  rig.reopen();
  int missed = 0;
  for (int64_t n = 0; n < 30; ++n) {
    EXPECT_TRUE(rig.find(n));
    TierOutcome outcome = rig.read(n);
    if (outcome == TierOutcome::kDone) continue;
    EXPECT_EQ(outcome, TierOutcome::kChecksum);
    EXPECT_EQ(rig.read(n), TierOutcome::kAbsent);
    EXPECT_EQ(rig.write(n), TierOutcome::kDone);
    EXPECT_EQ(rig.read(n), TierOutcome::kDone);
    ++missed;
  }
  EXPECT_EQ(missed, 6);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskStore, AnOldIndexBesideNewSlabsGivesNoWrongBytes) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path(), 1 << 20), tier_states());
  for (int64_t n = 0; n < 20; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.close();
  std::string index = digest_folder(folder.path()) + "/class0.idx";
  auto old = read_file(index);
  ASSERT_TRUE(old);
  rig.reopen();
  for (int64_t n = 20; n < 90; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.close();
  ASSERT_TRUE(replace_file(index, *old));
  rig.reopen();
  int other = 0;
  for (int64_t n = 0; n < 90; ++n) other += rig.read(n) == TierOutcome::kIdentity;
  EXPECT_GT(other, 0);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskStore, SlabsThatWereCutShortAreMadeWhole) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 30; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.close();
  fs::resize_file(digest_folder(folder.path()) + "/class0-00000000.slab", 3 * 16384 + 100);
  rig.reopen();
  int there = 0;
  for (int64_t n = 0; n < 30; ++n) there += rig.read(n) == TierOutcome::kDone;
  EXPECT_GE(there, 17);  // of the second slab, and three of the first
  EXPECT_LT(there, 30);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(DiskStore, AFolderThatIsRemovedTurnsItOff) {
  test::TemporaryFolder folder;
  TierRig rig(disk_config(folder.path() + "/cache"), tier_states());
  ASSERT_EQ(rig.write(1), TierOutcome::kDone);
  fs::remove_all(folder.path() + "/cache");
  EXPECT_NE(rig.write(2), TierOutcome::kAbsent);
  rig.store().sync();
  EXPECT_EQ(rig.store().stats().health, TierHealth::kOff);
  EXPECT_NE(rig.store().stats().trouble.find("removed"), std::string::npos);
  EXPECT_FALSE(rig.find(1));
  EXPECT_EQ(rig.read(1), TierOutcome::kFailed);
  EXPECT_EQ(rig.write(3), TierOutcome::kRefused);
}

TEST(DiskStore, RanksHaveFoldersOfTheirOwn) {
  test::TemporaryFolder folder;
  TierConfig config = disk_config(folder.path());
  config.ranks = 2;
  TierRig first(config, tier_states());
  config.rank = 1;
  TierRig second(config, tier_states());
  EXPECT_EQ(first.write(1), TierOutcome::kDone);
  EXPECT_FALSE(second.find(1));
  EXPECT_TRUE(first.find(1));
}

}  // namespace
}  // namespace banyan::disk_store_test
