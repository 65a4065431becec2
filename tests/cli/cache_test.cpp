// banyan cache over folders that stores have written.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "support/shared.h"
#include "support/tier/tier_rig.h"

namespace banyan::cache_test {
namespace {

using test::ProgramResult;
using test::run_program;
using test::TierRig;

class CacheVerbs : public ::testing::Test {
 protected:
  CacheVerbs() {
    TierRig rig(test::disk_config(folder.path()), test::tier_states());
    for (int64_t n = 0; n < 5; ++n) (void)rig.write(n);
  }
  test::TemporaryFolder folder;
  std::string digest = test::tier_states().digest.value().hex();
};

TEST_F(CacheVerbs, ListVerifyAndShrink) {
  ProgramResult ls = run_program({"cache", "ls", folder.path()});
  EXPECT_EQ(ls.exit_code, 0) << ls.err;
  EXPECT_NE(ls.out.find(digest.substr(0, 16)), std::string::npos) << ls.out;
  EXPECT_NE(ls.out.find("pages of 16.4 kB"), std::string::npos) << ls.out;
  auto json = nlohmann::json::parse(run_program({"cache", "ls", folder.path(), "--json"}).out);
  EXPECT_EQ(json["digests"][0]["classes"][0]["units"], 5);
  ProgramResult verify = run_program({"cache", "verify", folder.path()});
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
  EXPECT_NE(verify.out.find("5 records"), std::string::npos) << verify.out;
  EXPECT_EQ(run_program({"cache", "gc", folder.path()}).exit_code, 2);
  EXPECT_EQ(run_program({"cache", "gc", folder.path(), "--all", "--dry-run"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/" + digest));
  EXPECT_EQ(run_program({"cache", "gc", folder.path(), "--all"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/" + digest));
}

TEST_F(CacheVerbs, VerifyEndsWithOneWhereARecordIsBad) {
  {
    std::fstream file(folder.path() + "/" + digest + "/class0-00000000.slab",
                      std::ios::binary | std::ios::in | std::ios::out);
    for (int i = 0; i < 8; ++i) {
      file.seekp(9000 + i);
      file.put(static_cast<char>(i));
    }
  }
  ProgramResult verify = run_program({"cache", "verify", folder.path()});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_NE(verify.out.find("checksum"), std::string::npos) << verify.out;
}

TEST(CacheVerb, NamesAFolderThatIsMissingOrEmpty) {
  test::TemporaryFolder folder;
  test::ProgramResult empty = run_program({"cache", "ls", folder.path()});
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_EQ(empty.out, folder.path() + " holds no cached states\n");
  test::ProgramResult missing = run_program({"cache", "ls", folder.path() + "/nope"});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_NE(missing.err.find("no such folder"), std::string::npos) << missing.err;
}

TEST(CacheVerb, RefusesAnotherFolder) {
  test::TemporaryFolder folder;
  folder.write("letter.txt", "dear");
  for (const char* verb : {"ls", "verify"}) {
    EXPECT_EQ(run_program({"cache", verb, folder.path()}).exit_code, 2);
  }
  EXPECT_EQ(run_program({"cache", "gc", folder.path(), "--all"}).exit_code, 2);
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/letter.txt"));
}

}  // namespace
}  // namespace banyan::cache_test
