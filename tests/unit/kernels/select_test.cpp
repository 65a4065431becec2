// Selecting kernel tables by name, and the table that only measures.
#include "kernels/select.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "quant/formats.h"

namespace banyan::select_test {
namespace {

TEST(SelectKernels, PortableRunsEverywhere) {
  EXPECT_EQ(available_kernels().front(), "portable");
  auto table = select_kernels("portable");
  ASSERT_TRUE(table.has_value());
  EXPECT_STREQ((*table)->name, "portable");
}

TEST(SelectKernels, EveryAvailableNameSelectsACompleteTable) {
  for (const std::string& name : available_kernels()) {
    SCOPED_TRACE(name);
    auto selected = select_kernels(name);
    ASSERT_TRUE(selected.has_value()) << selected.error().message;
    const KernelTable& table = **selected;
    EXPECT_EQ(table.name, name);
    int optional = 0;
    for (const WeightFormat& format : weight_formats()) {
      const GemmKernel& gemm = table.*format.kernel;
      EXPECT_TRUE(gemm.packed_bytes && gemm.workspace_bytes && gemm.pack && gemm.gather &&
                  gemm.run);
      EXPECT_EQ(gemm.packed_bytes(3, 64, 32) % 64, 0u);
      if (gemm.block_rows == nullptr) ++optional;
      if (gemm.gates == nullptr) optional += 2;  // and run_gated
    }
    // A table is pointers and nothing else.
    std::array<uintptr_t, sizeof(KernelTable) / sizeof(uintptr_t)> slots;
    static_assert(sizeof(slots) == sizeof(KernelTable));
    std::memcpy(slots.data(), &table, sizeof(table));
    EXPECT_EQ(std::ranges::count(slots, 0u), optional);
  }
}

TEST(SelectKernels, AGpuThatCannotBeUsedIsRefusedWithTheReason) {
  auto table = select_kernels("cuda");
  if (table) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(table.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(table.error().message.starts_with("--device cuda: ")) << table.error().message;
  EXPECT_GT(table.error().message.size(), 20u);
}

TEST(SelectKernels, AutoWithoutAModelIsTheLast) {
  auto table = select_kernels("auto");
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ((*table)->name, available_kernels().back());
}

TEST(SelectKernels, ErrorsNameWhatWouldWork) {
  for (const char* name : {"", "fast", "AVX2"}) {
    auto table = select_kernels(name);
    ASSERT_FALSE(table.has_value()) << name;
    const std::string& message = table.error().message;
    EXPECT_TRUE(message.contains(fmt::format("\"{}\"", name))) << message;
    EXPECT_TRUE(message.contains("auto, portable")) << message;
  }
  for (const char* name : {"avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"}) {
    auto table = select_kernels(name);  // there, or known to be of another machine
    if (table) continue;
    EXPECT_EQ(table.error().code, ErrorCode::kUnsupported) << name;
  }
  EXPECT_EQ(select_kernels("fast").error().code, ErrorCode::kInvalidArgument);
}

TEST(MeasuringKernels, HaveTheSizesOfTheOriginalAndWriteNothing) {
  const KernelTable& real = **select_kernels("auto");
  KernelTable measuring = measuring_kernels(real);
  EXPECT_EQ(measuring.gemm_bf16.packed_bytes(100, 33, 33),
            real.gemm_bf16.packed_bytes(100, 33, 33));
  measuring.gemm_f32.run({.weights = {.count = 1 << 20}, .n = 1 << 20, .k = 1 << 20});
  measuring.attention(
      {.q_heads = 1, .kv_heads = 1, .head_dim = 64, .value_dim = 64, .span_count = 9});
  measuring.add({.count = 1 << 20});
}

}  // namespace
}  // namespace banyan::select_test
