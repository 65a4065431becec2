// Boxes of a matrix that tensor maps describe.
#include <gtest/gtest.h>

#include <cstddef>

#include "ptx/small_kernel.h"
#include "ptx/tensor_map.h"

namespace banyan::ptx::tensor_copies_test {
namespace {

constexpr int kColumns = 128, kRows = 24, kBoxRows = 16, kThreads = 64;

// What the kernel's parameter points to.
struct Data {
  uint32_t out[kThreads];
  cuda::TensorMap map;
  uint16_t matrix[kRows][kColumns];
};

// One thread copies 16 rows of 64 columns. Each reads two values: every second chunk of 16 bytes.
std::string kernel() {
  std::string body = fmt::format(
      R"(
  mov.u32 %r1, bar; mov.u32 %r2, bytes; mov.u32 %r5, 64; mov.u32 %r6, 5;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra begun;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.proxy.async;
  begun: bar.sync 0;
  @%p1 bra again;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 2048;
  add.s64 %rd1, %rd0, {};
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%r2], [%rd1, {{%r5, %r6}}], [%r1];
  again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
  shr.u32 %r3, %r0, 2; and.b32 %r4, %r0, 3; shl.b32 %r4, %r4, 1;
  and.b32 %r7, %r3, 7; xor.b32 %r4, %r4, %r7; shl.b32 %r4, %r4, 4;
  shl.b32 %r3, %r3, 7; add.s32 %r3, %r3, %r4; add.s32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
  )",
      offsetof(Data, map));
  return small_kernel(body + output("%r4"),
                      ".shared .align 1024 .b8 bytes[4096]; .shared .align 8 .b8 bar[16];");
}

// Runs it with 30 seeds; how many give the values of the matrix.
int right_runs(const std::string& text) {
  Module module(text);
  int right = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Data data = {};
    for (int i = 0; i < kRows * kColumns; ++i) {
      data.matrix[i / kColumns][i % kColumns] = static_cast<uint16_t>(i);
    }
    data.map = map_of({data.matrix, kColumns, kBoxRows});
    Launch launch{.threads = kThreads, .parameters = parameter_block(&data), .seed = seed};
    ptx::launch(module, "test", launch);
    bool all = true;
    for (int i = 0; i < kThreads; ++i) {
      const uint16_t* values = &data.matrix[5 + i / 4][64 + i % 4 * 16];
      uint32_t expected = values[0] | uint32_t{values[1]} << 16;
      all = all && data.out[i] == expected;
    }
    right += all;
  }
  return right;
}

std::string error_of(const std::string& text) {
  try {
    right_runs(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PtxTensorCopies, BoxesComeSwizzledWhenTheBarrierSays) {
  EXPECT_EQ(right_runs(kernel()), 30);
}

TEST(PtxTensorCopies, AMissingWaitShows) {
  std::string text = replaced(kernel(), "@!%p2 bra again;", "");
  bool fails = !error_of(text).empty();
  EXPECT_TRUE(fails || right_runs(text) < 30);
}

TEST(PtxTensorCopies, MisuseIsNamed) {
  auto expect_error_with = [](std::string_view what, std::string_view by, const char* expected) {
    std::string error = error_of(replaced(kernel(), what, by));
    EXPECT_NE(error.find(expected), error.npos) << "got: " << error;
  };
  expect_error_with("mov.u32 %r5, 64", "mov.u32 %r5, 72", "column 72 of 128");
  expect_error_with("mov.u32 %r2, bytes", "add.u32 %r2, bytes, 512", "a box goes");
  expect_error_with(", 2048;", ", 2064;", "nothing can get on");
  expect_error_with("fence.proxy.async;", "", "no fence has shown the mbarrier");
}

}  // namespace
}  // namespace banyan::ptx::tensor_copies_test
