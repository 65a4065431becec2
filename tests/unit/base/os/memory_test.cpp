// Memory blocks, and the available memory of the machine and of made-up control groups.
#include "base/os/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "support/shared.h"

namespace banyan::memory_test {
namespace {

TEST(MemoryBlock, IsZeroedAndWritable) {
  MemoryBlock block(3 << 20);
  ASSERT_EQ(block.size(), 3u << 20);
  EXPECT_TRUE(std::all_of(block.data(), block.data() + block.size(),
                          [](std::byte b) { return b == std::byte{0}; }));
  block.data()[block.size() - 1] = std::byte{1};
}

TEST(MemoryBlock, ReservesMoreThanTheMachineHas) {
  MemoryBlock block(size_t{1} << 42);
  block.data()[size_t{1} << 41] = std::byte{1};
  EXPECT_EQ(block.data()[size_t{1} << 41], std::byte{1});
}

// It aborted the program.
TEST(MemoryBlock, AnErrorSaysHowMuchCannotBeReservedAndHowToProceed) {
  MemoryBlock block(4096);
  std::byte* data = block.data();
  try {
    block = MemoryBlock(size_t{1} << 60);
    FAIL() << "reserved";
  } catch (const std::bad_alloc& e) {
    std::string what = e.what();
    EXPECT_TRUE(what.contains("cannot reserve 1153 PB of address space")) << what;
    EXPECT_TRUE(what.contains("--max-total-tokens")) << what;
    EXPECT_TRUE(what.contains("ulimit -v")) << what;
  }
  EXPECT_EQ(block.data(), data) << "lost what it had";
}

TEST(MemoryBlock, MovesAndMayBeEmpty) {
  MemoryBlock none(0);
  EXPECT_EQ(none.data(), nullptr);
  MemoryBlock a(4096);
  std::byte* data = a.data();
  MemoryBlock b(std::move(a));
  EXPECT_EQ(b.data(), data);
  none = std::move(b);
  EXPECT_EQ(none.data(), data);
}

TEST(AvailableMemory, IsPositive) {
  EXPECT_GT(available_memory_bytes(), 0);
}

TEST(AvailableMemory, CountsCachedFilesOfACgroupAsFree) {
  test::TemporaryFolder folder;
  EXPECT_GE(cgroup_available_bytes(folder.path()), int64_t{1} << 60) << "no such files";
  folder.write("memory.max", "max\n");
  folder.write("memory.current", "900\n");
  EXPECT_GE(cgroup_available_bytes(folder.path()), int64_t{1} << 60);
  folder.write("memory.max", "1000\n");
  EXPECT_EQ(cgroup_available_bytes(folder.path()), 100);
  folder.write("memory.stat", "anon 200\nfile 700\ninactive_file 500\nactive_file 150\n");
  EXPECT_EQ(cgroup_available_bytes(folder.path()), 750);
  folder.write("memory.current", "5000\n");
  EXPECT_EQ(cgroup_available_bytes(folder.path()), 0);
}

}  // namespace
}  // namespace banyan::memory_test
