// Issue 17: a server went from 65 to 564 MB under hostile load and kept it.
#include "server/status/memory_use.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/sanitized.h"

namespace banyan::memory_use_test {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

MemoryUse measured() {
  MemoryUse use;
  measure_memory(use);
  return use;
}

TEST(MemoryUse, CountsTheHeapAndWhatIsResident) {
#ifdef BANYAN_SANITIZED
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  MemoryUse before = measured();
  auto block = std::make_unique<std::string>(64 * kMegabyte, 'x');
  MemoryUse with = measured();
  EXPECT_GE(with.heap_used, before.heap_used + 64 * kMegabyte);
  EXPECT_GE(with.resident, before.resident + 60 * kMegabyte);
  block.reset();
  EXPECT_LE(measured().heap_used, before.heap_used + kMegabyte);
}

TEST(MemoryUse, WhatALoadLeavesIsGivenBack) {
#ifdef BANYAN_SANITIZED
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  give_back_memory();
  MemoryUse before = measured();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 256'000; ++i) {
    blocks.push_back(std::make_unique<char[]>(400));
  }
  // One in a thousand lives on, so that the free ones between them do not go by themselves.
  std::vector<std::unique_ptr<char[]>> kept;
  for (size_t i = 0; i < blocks.size(); i += 1000) kept.push_back(std::move(blocks[i]));
  blocks.clear();
  MemoryUse left = measured();
  EXPECT_GE(left.heap_free, 80 * kMegabyte);
  EXPECT_TRUE(give_back_memory());
  EXPECT_LE(measured().resident, before.resident + 20 * kMegabyte);
  EXPECT_LE(measured().resident, left.resident - 60 * kMegabyte);
}

}  // namespace
}  // namespace banyan::memory_use_test
