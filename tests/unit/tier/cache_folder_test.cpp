// Listing, verifying and shrinking cache folders, including those in use.
#include "tier/cache_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/shared.h"
#include "support/tier/tier_rig.h"

namespace banyan::cache_folder_test {
namespace {

namespace fs = std::filesystem;
using test::tier_states;
using test::TierRig;

constexpr auto kGoOn = [](const CacheCheck&) { return true; };

TierConfig config_of(const std::string& backend, const std::string& folder) {
  TierConfig config = test::disk_config(folder);
  config.backend = backend;
  return config;
}

std::string digest_of(const std::string& model) {
  return tier_states(model).digest.value().hex();
}

class CacheFolder : public testing::TestWithParam<std::string> {
 protected:
  // Two models' states; five pages and three slots of each.
  CacheFolder() {
    for (const char* model : {"old", "new"}) {
      TierRig rig(config_of(GetParam(), folder.path()), tier_states(model));
      for (int64_t n = 0; n < 5; ++n) (void)rig.write(n);
      for (int64_t n = 0; n < 3; ++n) (void)rig.write(n, 1);
    }
    make_old("old");
  }

  // As if it had been used long ago.
  void make_old(const std::string& model) {
    auto then = fs::file_time_type::clock::now() - std::chrono::hours(240);
    for (const auto& entry :
         fs::recursive_directory_iterator(folder.path() + "/" + digest_of(model))) {
      fs::last_write_time(entry.path(), then);
    }
    fs::last_write_time(folder.path() + "/" + digest_of(model), then);
  }

  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::vector<CacheDigest> list() const {
    auto digests = list_cache(system_storage(), folder.path());
    EXPECT_TRUE(digests) << digests.error().message;
    return digests.value_or(std::vector<CacheDigest>());
  }

  test::TemporaryFolder folder;
};

TEST_P(CacheFolder, ListsWhatIsStored) {
  std::vector<CacheDigest> digests = list();
  ASSERT_EQ(digests.size(), 2u);
  EXPECT_EQ(digests[0].model, "new");
  EXPECT_EQ(digests[0].digest, digest_of("new"));
  EXPECT_GT(digests[0].used_s, digests[1].used_s + 9 * 86400);
  EXPECT_GT(digests[0].bytes, 5 * 16384);
  ASSERT_EQ(digests[0].classes.size(), 2u);
  EXPECT_EQ(digests[0].classes[0].units, 5);
  EXPECT_EQ(digests[0].classes[0].record_bytes, 16384);
  EXPECT_EQ(digests[0].classes[0].units_are, "pages");
  EXPECT_EQ(digests[0].classes[1].units, 3);
}

TEST_P(CacheFolder, VerifiesEveryRecord) {
  auto check = verify_cache(system_storage(), folder.path(), {}, kGoOn);
  ASSERT_TRUE(check);
  EXPECT_EQ(check->records, 16);
  EXPECT_EQ(check->bad, 0);
  bool damaged = false;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    std::string name = entry.path().filename();
    if (damaged || (name != "class0-00000000.slab" && !name.ends_with("-0-0-of-1"))) continue;
    std::fstream file(entry.path(), std::ios::binary | std::ios::in | std::ios::out);
    for (int i = 0; i < 8; ++i) {
      file.seekp(9000 + i);
      file.put(static_cast<char>(i));
    }
    damaged = true;
  }
  check = verify_cache(system_storage(), folder.path(), {}, kGoOn);
  ASSERT_TRUE(check);
  EXPECT_EQ(check->records, 16);
  EXPECT_EQ(check->bad, 1);
  EXPECT_EQ(check->first_bad.size(), 1u);
  check =
      verify_cache(system_storage(), folder.path(), {}, [](const CacheCheck&) { return false; });
  EXPECT_EQ(check->records, 1);
}

TEST_P(CacheFolder, RemovesWhatIsNamed) {
  auto shrink = [&](const CacheLimits& limits) {
    auto removed = shrink_cache(system_storage(), folder.path(), limits, now());
    EXPECT_TRUE(removed) << removed.error().message;
    return removed ? removed->digests : -1;
  };
  EXPECT_EQ(shrink({.unused_s = 20 * 86400}), 0);
  EXPECT_EQ(shrink({.size_bytes = 1 << 30}), 0);
  EXPECT_EQ(shrink({.only = digest_of("other")}), 0);
  EXPECT_EQ(shrink({.unused_s = 5 * 86400, .dry_run = true}), 1);
  EXPECT_EQ(list().size(), 2u);
  EXPECT_EQ(shrink({.unused_s = 5 * 86400}), 1);
  ASSERT_EQ(list().size(), 1u);
  EXPECT_EQ(list()[0].model, "new");
  EXPECT_EQ(shrink({.keep = digest_of("new").substr(0, 8)}), 0);
  EXPECT_EQ(shrink({.size_bytes = 0}), 1);
  EXPECT_EQ(list().size(), 0u);
}

TEST_P(CacheFolder, WhatIsInUseIsLeftAlone) {
  TierRig rig(config_of(GetParam(), folder.path()), tier_states("new"));
  EXPECT_EQ(list().size(), 2u);
  EXPECT_TRUE(verify_cache(system_storage(), folder.path(), {}, kGoOn));
  auto removed = shrink_cache(system_storage(), folder.path(), {}, now());
  EXPECT_EQ(removed.has_value(), GetParam() == "file");
}

TEST_P(CacheFolder, AnotherFolderIsRefused) {
  test::TemporaryFolder other;
  EXPECT_FALSE(list_cache(system_storage(), other.path()));
  EXPECT_FALSE(shrink_cache(system_storage(), other.path(), {}, now()));
  EXPECT_FALSE(list_cache(system_storage(), other.path() + "/none"));
}

INSTANTIATE_TEST_SUITE_P(Stores, CacheFolder, testing::Values("disk", "file"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace banyan::cache_folder_test
