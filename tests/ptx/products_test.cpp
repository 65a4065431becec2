// Products of a warpgroup: their bits, and every way to use them wrongly that the interpreter
// knows.
#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <random>

#include "kernels/cuda/shared_layout.h"
#include "kernels/cuda/wgmma_arithmetic.h"
#include "ptx/small_kernel.h"
#include "tensor/float_types.h"

namespace banyan::ptx::products_test {
namespace {

constexpr uint32_t kRows = 64, kColumns = 24, kDepth = 64;
constexpr uint32_t kTileBytes = 8192;  // of a; b follows it
constexpr uint32_t kSharedBytes = kTileBytes + kColumns * kDepth * 2;

// What the kernel has in global memory: both tiles as they lie in shared memory, and the results.
struct Data {
  alignas(16) std::byte tiles[kSharedBytes];
  float d[kRows][kColumns];
};

struct Matrices {
  Matrices() {
    std::mt19937 engine(5);
    std::normal_distribution<float> normal;
    auto fill = [&](auto& matrix) {
      for (auto& row : matrix) {
        for (BFloat16& x : row) x = from_float<BFloat16>(normal(engine));
      }
    };
    fill(a);
    fill(b);
    auto lay_out = [&](auto& matrix, uint32_t begin) {
      for (uint32_t r = 0; r < std::size(matrix); ++r) {
        for (uint32_t c = 0; c < kDepth; ++c) {
          std::memcpy(data.tiles + begin + cuda::swizzled(r, 2 * c), &matrix[r][c], 2);
        }
      }
    };
    lay_out(a, 0);
    lay_out(b, kTileBytes);
  }
  BFloat16 a[kRows][kDepth], b[kColumns][kDepth];
  Data data;
};

// "{%f1, ..., %f12}"
std::string results() {
  std::string list;
  for (uint32_t i = 1; i <= kColumns / 2; ++i) list += fmt::format("{}%f{}", i > 1 ? ", " : "{", i);
  return list + "}";
}

// Copies the tiles to shared memory, multiplies and stores; `a` is the operand of step `step`.
std::string product_kernel(const std::function<std::string(int step)>& a) {
  std::string text = fmt::format(R"(
  mov.u32 %r1, dynamic; mov.u32 %r2, %r0;
  copy: shl.b32 %r3, %r2, 2; cvt.u64.u32 %rd1, %r3; add.s64 %rd1, %rd1, %rd0;
  ld.global.u32 %r4, [%rd1]; add.s32 %r3, %r3, %r1; st.shared.u32 [%r3], %r4;
  add.s32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, {};
  @%p1 bra copy;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %r5, %r1, 4; cvt.u64.u32 %rd2, %r5; mov.u64 %rd3, {}; or.b64 %rd2, %rd2, %rd3;
  add.s64 %rd3, %rd2, {};
  setp.ne.u32 %p3, %r1, %r1;
  wgmma.fence.sync.aligned;
)",
                                 kSharedBytes / 4, cuda::tile_descriptor(0), kTileBytes >> 4);
  for (int step = 0; step < 4; ++step) {
    std::string adds = step > 0 ? "%p4" : "%p3";
    std::string operand = a(step);
    bool in_registers = operand.starts_with('{');
    text += fmt::format(
        "wgmma.mma_async.sync.aligned.m64n{}k16.f32.bf16.bf16 {}, {}, %rd3, {}, 1, 1, "
        "0{}; setp.eq.u32 %p4, %r1, %r1; add.s64 %rd2, %rd2, 2; "
        "add.s64 %rd3, %rd3, 2;\n",
        kColumns, results(), operand, adds, in_registers ? "" : ", 0");
  }
  text += R"(wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  shr.u32 %r6, %r0, 2; and.b32 %r7, %r6, 7; and.b32 %r8, %r6, 24; shl.b32 %r8, %r8, 1;
  add.s32 %r7, %r7, %r8; and.b32 %r9, %r0, 3; shl.b32 %r9, %r9, 1;
)";
  for (uint32_t i = 0; i < kColumns / 2; ++i) {
    text += fmt::format(
        "mad.lo.s32 %r10, %r7, {}, %r9; mul.wide.u32 %rd4, %r10, 4; "
        "add.s64 %rd4, %rd4, %rd0; st.global.f32 [%rd4+{}], %f{};\n",
        kColumns, kSharedBytes + 4 * (i / 2 % 2 * 8 * kColumns + i / 4 * 8 + i % 2), i + 1);
  }
  return small_kernel(text);
}

std::string from_shared(int) {
  return "%rd2";
}

// a of this step as registers, read from where it lies in global memory.
std::string from_registers(int step) {
  return fmt::format("{{%r{}, %r{}, %r{}, %r{}}}", 20 + 4 * step, 21 + 4 * step, 22 + 4 * step,
                     23 + 4 * step);
}
std::string load_registers() {
  std::string text =
      "shr.u32 %r6, %r0, 2; and.b32 %r7, %r6, 7; and.b32 %r8, %r6, 24; "
      "shl.b32 %r8, %r8, 1; add.s32 %r7, %r7, %r8; and.b32 %r9, %r0, 3;\n";
  for (int i = 0; i < 16; ++i) {
    // The swizzled offset of row %r7 + 8 * (i % 2), column 16 * step + 8 * (i / 2 % 2) + 2 * %r9.
    text += fmt::format(
        "add.s32 %r10, %r7, {}; shl.b32 %r11, %r10, 7; shl.b32 %r12, %r9, 2; "
        "add.s32 %r11, %r11, {}; add.s32 %r11, %r11, %r12; and.b32 %r12, %r10, 7; "
        "shl.b32 %r12, %r12, 4; xor.b32 %r11, %r11, %r12; cvt.u64.u32 %rd4, %r11; "
        "add.s64 %rd4, %rd4, %rd0; ld.global.u32 %r{}, [%rd4];\n",
        8 * (i % 2), 32 * (i / 4) + 16 * (i / 2 % 2), 20 + i);
  }
  return text;
}

constexpr Launch kLaunch{.threads = 128, .shared_bytes = kSharedBytes};

// How many of ten seeds give the right results.
int right_runs(const std::string& text) {
  static Matrices matrices;
  Module module(text);
  Launch launch = kLaunch;
  int right = 0;
  for (launch.seed = 1; launch.seed <= 10; ++launch.seed) {
    Data data = matrices.data;
    launch.parameters = parameter_block(&data);
    try {
      ptx::launch(module, "test", launch);
    } catch (const Error&) {
      continue;
    }
    bool all = true;
    for (uint32_t r = 0; r < kRows; ++r) {
      for (uint32_t c = 0; c < kColumns; ++c) {
        float expected = cuda::wgmma_sum(matrices.a[r], matrices.b[c], kDepth);
        all = all && std::bit_cast<uint32_t>(data.d[r][c]) == std::bit_cast<uint32_t>(expected);
      }
    }
    right += all;
  }
  return right;
}

void expect_misuse(const std::string& text, const char* expected) {
  Launch launch = kLaunch;
  Data data{};
  Module module(text);
  std::string error;
  for (launch.seed = 1; launch.seed <= 20 && error.empty(); ++launch.seed) {
    launch.parameters = parameter_block(&data);
    try {
      ptx::launch(module, "test", launch);
    } catch (const Error& thrown) {
      error = thrown.what();
    }
  }
  EXPECT_NE(error.find(expected), error.npos) << "got: " << error;
}

TEST(PtxProducts, HaveTheBitsOfTheirArithmetic) {
  EXPECT_EQ(right_runs(product_kernel(from_shared)), 10);
}

TEST(PtxProducts, TakeOneOperandFromRegisters) {
  std::string text = product_kernel(from_registers);
  EXPECT_EQ(right_runs(replaced(text, "wgmma.fence", load_registers() + "wgmma.fence")), 10);
}

TEST(PtxProducts, OperandsMustStayUntilTheWait) {
  std::string text = product_kernel(from_shared);
  // Too early: before the wait.
  std::string early = replaced(text, "wgmma.wait_group",
                               "st.shared.u32 [%r3+-512], %r0; "
                               "fence.proxy.async; wgmma.wait_group");
  EXPECT_LT(right_runs(early), 10);
  // A product is one for the warpgroup: after the wait no warp needs the operands.
  std::string late = replaced(text, "shr.u32 %r6", "st.shared.u32 [%r3+-512], %r0; shr.u32 %r6");
  EXPECT_EQ(right_runs(late), 10);
}

TEST(PtxProducts, AWarpThatDoesNotTakePartIsADeadlock) {
  std::string text = replaced(product_kernel(from_shared), "wgmma.fence",
                              "setp.gt.u32 %p5, %r0, 95; @%p5 ret; wgmma.fence");
  expect_misuse(text, "waiting at a product that other warps have not begun");
}

TEST(PtxProducts, MisuseIsNamed) {
  std::string text = product_kernel(from_shared);
  expect_misuse(replaced(text, "wgmma.wait_group.sync.aligned 0;", ""),
                "it touches the result of a product that is in flight");
  expect_misuse(replaced(text, "aligned 0;", "aligned 1;"), "st.global.f32 [%rd4+");
  expect_misuse(replaced(text, "wgmma.commit_group", "add.f32 %f3, %f3, %f3; wgmma.commit_group"),
                "it touches the result of a product that is in flight");
  expect_misuse(replaced(text, "wgmma.fence.sync.aligned;", ""), "no wgmma.fence before it");
  expect_misuse(replaced(text, "fence.proxy.async.shared::cta;", ""),
                "no fence.proxy.async between");
  expect_misuse(replaced(text, "wgmma.commit_group", "@%p4 ret; wgmma.commit_group"),
                "exits while a product is in flight");
  expect_misuse(replaced(text, "%p4, 1, 1, 0, 0;", "%p4, 1, 1, 1, 0;"), "1 where 0 is known only");
  expect_misuse(replaced(text, fmt::format("{}", cuda::tile_descriptor(0)), "65536"),
                "no swizzle of 128 bytes");
  // The upper warps take another tile.
  expect_misuse(replaced(text, "add.s64 %rd2, %rd2, 2;",
                         "setp.gt.u32 %p5, %r0, 63; @%p5 add.s64 %rd2, %rd2, 2;"),
                "of a warpgroup have begun others");
}

TEST(PtxProducts, RegistersThatAreReadMustStay) {
  std::string text = product_kernel(from_registers);
  text = replaced(text, "wgmma.fence", load_registers() + "wgmma.fence");
  expect_misuse(replaced(text, "wgmma.commit_group", "mov.u32 %r20, 0; wgmma.commit_group"),
                "writes a register that a product in flight reads");
}

TEST(PtxProducts, MovesOfResultsWaitForThem) {
  std::string text = product_kernel(from_shared);
  text = replaced(text, "wgmma.commit_group",
                  "mov.f32 %f40, %f1; mov.f32 %f1, %f40; wgmma.commit_group");
  EXPECT_EQ(right_runs(text), 10);
}

}  // namespace
}  // namespace banyan::ptx::products_test
