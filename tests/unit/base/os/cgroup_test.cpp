// Control groups of both versions, from made-up files of /proc and /sys.
#include "base/os/cgroup.h"

#include <gtest/gtest.h>

#include <climits>
#include <filesystem>
#include <fstream>

#include "base/os/memory.h"

namespace banyan::cgroup_test {
namespace {

class Cgroup : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string write(const std::string& path, const std::string& text) {
    std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.parent_path();
  }

  std::string root_ = ::testing::TempDir() + "cgroup_test_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(Cgroup, FindsTheOwnGroupAndThoseAroundIt) {
  write("proc/cgroup", "0::/kubepods/pod7/box\n");
  write("proc/mountinfo",
        "24 1 0:22 / /proc rw - proc proc rw\n"
        "30 23 0:26 / /mnt/cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  std::vector<std::string> expected = {"/mnt/cg/kubepods/pod7/box", "/mnt/cg/kubepods/pod7",
                                       "/mnt/cg/kubepods", "/mnt/cg"};
  EXPECT_EQ(cgroup_folders("cpu", root_ + "/proc"), expected);
  EXPECT_EQ(cgroup_folders("memory", root_ + "/proc"), expected);
}

TEST_F(Cgroup, FindsTheControllerOfVersionOneBesideVersionTwo) {
  write("proc/cgroup", "5:memory:/a/b\n3:cpu,cpuacct:/docker/1f\n0::/\n");
  write("proc/mountinfo",
        "31 30 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n"
        "32 30 0:28 /docker/1f /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "33 30 0:29 / /cg/unified rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(cgroup_folders("cpu", root_ + "/proc"),
            (std::vector<std::string>{"/cg/cpu", "/cg/unified"}));
  EXPECT_EQ(
      cgroup_folders("memory", root_ + "/proc"),
      (std::vector<std::string>{"/cg/memory/a/b", "/cg/memory/a", "/cg/memory", "/cg/unified"}));
}

TEST_F(Cgroup, SurvivesFilesThatAreMissingOrOdd) {
  EXPECT_TRUE(cgroup_folders("cpu", root_ + "/nowhere").empty());
  write("proc/cgroup", "\n:\nno colons\n0::/../../outside\n7:cpu");
  write("proc/mountinfo", "\n1 2\n1 2 3 / /cg rw -\n1 2 3 / /cg rw - cgroup2 none rw\n");
  EXPECT_EQ(cgroup_folders("cpu", root_ + "/proc"), (std::vector<std::string>{"/cg"}));
}

TEST_F(Cgroup, ReadsQuotas) {
  EXPECT_EQ(cgroup_processors(root_), INT_MAX);
  EXPECT_EQ(cgroup_processors(write("a/cpu.max", "max 100000\n")), INT_MAX);
  EXPECT_EQ(cgroup_processors(write("b/cpu.max", "250000 100000\n")), 3);
  EXPECT_EQ(cgroup_processors(write("c/cpu.max", "1000 100000\n")), 1);
  write("d/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_processors(write("d/cpu.cfs_quota_us", "-1\n")), INT_MAX);
  EXPECT_EQ(cgroup_processors(write("d/cpu.cfs_quota_us", "400000\n")), 4);
  EXPECT_EQ(cgroup_processors(write("e/cpu.max", "9223372036854775807 1")), INT_MAX);
  EXPECT_EQ(cgroup_processors(write("f/cpu.max", "x y")), INT_MAX);
}

TEST_F(Cgroup, CountsMemoryOfVersionOne) {
  write("m/memory.limit_in_bytes", "1000\n");
  write("m/memory.usage_in_bytes", "600\n");
  EXPECT_EQ(cgroup_available_bytes(write("m/memory.stat",
                                         "active_file 5\ntotal_active_file 50\n"
                                         "total_inactive_file 100\n")),
            550);
}

}  // namespace
}  // namespace banyan::cgroup_test
