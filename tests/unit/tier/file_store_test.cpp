// The file store as several processes use it, and on a failing file system.
#include "tier/file_store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/shared.h"
#include "support/tier/fault_storage.h"
#include "support/tier/tier_rig.h"

namespace banyan::file_store_test {
namespace {

namespace fs = std::filesystem;
using test::FaultStorage;
using test::tier_states;
using test::TierRig;

TierConfig file_config(const std::string& folder) {
  return {.backend = "file", .directory = folder, .min_free_bytes = 0, .write_share = 1};
}

std::vector<fs::path> records_below(const std::string& folder) {
  std::vector<fs::path> records;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename().string().ends_with("-of-1")) records.push_back(entry.path());
  }
  return records;
}

TEST(FileStore, ProcessesShareWhatTheyWrite) {
  test::TemporaryFolder folder;
  TierRig first(file_config(folder.path()), tier_states());
  TierRig second(file_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 20; ++n) {
    EXPECT_EQ(second.read(n, n % 2), TierOutcome::kAbsent);
    EXPECT_FALSE(second.find(n, n % 2));
    EXPECT_EQ(first.write(n, n % 2, n % 3 == 0), TierOutcome::kDone);
    EXPECT_TRUE(second.find(n, n % 2));
    EXPECT_EQ(second.read(n, n % 2, n % 5 == 0), TierOutcome::kDone);
  }
  EXPECT_EQ(second.wrong(), 0);
  TierRig other(file_config(folder.path()), tier_states("other"));
  EXPECT_FALSE(other.find(1, 1));
  TierConfig config = file_config(folder.path());
  config.ranks = 2;
  EXPECT_FALSE(TierRig(config, tier_states()).find(1, 1));
}

TEST(FileStore, SeveralWriteTheSameAtOnce) {
  test::TemporaryFolder folder;
  std::vector<std::jthread> threads;
  std::atomic<int64_t> wrong = 0, failed = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TierRig rig(file_config(folder.path()), tier_states());
      for (int64_t n = 0; n < 40; ++n) {
        int64_t number = (n * 7 + t) % 20;
        failed += rig.write(number) != TierOutcome::kDone;
        failed += rig.read(number) != TierOutcome::kDone;
      }
      wrong += rig.wrong();
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(records_below(folder.path()).size(), 20u);
}

TEST(FileStore, DamageIsAMissAndGoes) {
  test::TemporaryFolder folder;
  TierRig rig(file_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 3; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  std::vector<fs::path> records = records_below(folder.path());
  ASSERT_EQ(records.size(), 3u);
  fs::resize_file(records[0], 5000);
  {
    std::fstream file(records[1], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(8000);
    file.put('\x01');
    file.seekp(8001);
    file.put('\x02');
  }
  fs::copy_file(records[1], records[2], fs::copy_options::overwrite_existing);
  for (int64_t n = 0; n < 3; ++n) {
    TierOutcome outcome = rig.read(n);
    EXPECT_TRUE(outcome == TierOutcome::kChecksum || outcome == TierOutcome::kIdentity);
    EXPECT_EQ(rig.read(n), TierOutcome::kAbsent);
    EXPECT_EQ(rig.write(n), TierOutcome::kDone);
    EXPECT_EQ(rig.read(n), TierOutcome::kDone);
  }
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(FileStore, ForgetsWhenTold) {
  test::TemporaryFolder folder;
  TierRig rig(file_config(folder.path()), tier_states());
  for (int64_t n = 0; n < 5; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  rig.store().clear();
  for (int64_t n = 0; n < 5; ++n) EXPECT_FALSE(rig.find(n));
  EXPECT_EQ(rig.write(1), TierOutcome::kDone);
  EXPECT_EQ(rig.read(1), TierOutcome::kDone);
}

TEST(FileStore, NothingThatIsHalfWrittenIsSeen) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  auto store = open_file_store(file_config(folder.path()), tier_states(), storage);
  ASSERT_TRUE(store);
  storage.set({.full = true});
  test::TierUnit unit(tier_states(), 1, 0);
  unit.fill();
  std::vector<TierDone> done;
  (*store)->write(unit.job(1));
  while (done.empty()) {
    (*store)->wait(std::chrono::seconds(1));
    (*store)->take_done(done);
  }
  EXPECT_EQ(done[0].outcome, TierOutcome::kFailed);
  EXPECT_TRUE(records_below(folder.path()).empty());
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("new-")) << entry.path();
  }
}

TEST(FileStore, AFileSystemThatFailsIsLeftAlone) {
  test::TemporaryFolder folder;
  FaultStorage storage(1);
  auto store = open_file_store(file_config(folder.path()), tier_states(), storage);
  ASSERT_TRUE(store);
  storage.set({.every_change = EIO});
  std::vector<test::TierUnit> units;
  for (int64_t n = 0; n < 8; ++n) units.emplace_back(tier_states(), n, 0);
  std::vector<TierDone> done;
  size_t refused = 0, ended = 0;
  for (size_t n = 0; n < units.size(); ++n) {
    (*store)->write(units[n].job(n + 1));
    do {
      (*store)->wait(std::chrono::seconds(1));
      (*store)->take_done(done);
    } while (done.empty());
    ended += done.size();
    refused += done[0].outcome == TierOutcome::kRefused;
  }
  EXPECT_EQ(ended, units.size());
  EXPECT_EQ(refused, 3u);  // after five that failed
  EXPECT_EQ((*store)->stats().health, TierHealth::kOff);
  EXPECT_NE((*store)->stats().trouble, "");
}

}  // namespace
}  // namespace banyan::file_store_test
