// Instructions of one lane: their results, from small kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ptx/small_kernel.h"

namespace banyan::ptx::arithmetic_test {
namespace {

// The bits that an instruction leaves in %r1 (or %f1, ...) of a warp's first lane.
uint32_t result(const std::string& code, std::string_view where = "%r1") {
  return run_small(small_kernel(code + output(where)))[0];
}
uint32_t float_result(const std::string& code) {
  return result(code, "%f1");
}
uint32_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}
constexpr uint32_t kNaN = 0x7fffffff;  // as a GPU gives it

TEST(PtxArithmetic, IntegersWrapAround) {
  EXPECT_EQ(result("mov.u32 %r2, 4294967295; add.s32 %r1, %r2, 2;"), 1u);
  EXPECT_EQ(result("mov.u32 %r2, 3; sub.s32 %r1, %r2, 5;"), static_cast<uint32_t>(-2));
  EXPECT_EQ(result("mov.u32 %r2, 65537; mul.lo.s32 %r1, %r2, %r2;"), 131073u);
  EXPECT_EQ(result("mov.u32 %r2, 65537; mul.hi.u32 %r1, %r2, %r2;"), 1u);
  EXPECT_EQ(result("mov.u32 %r2, -7; mad.lo.s32 %r1, %r2, 3, 1;"), static_cast<uint32_t>(-20));
  EXPECT_EQ(result("mov.u32 %r2, -7; mul.wide.s32 %rd1, %r2, 3; shr.s64 %rd1, %rd1, 32; "
                   "cvt.u32.u64 %r1, %rd1;"),
            0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, -7; mul.wide.u32 %rd1, %r2, 3; shr.u64 %rd1, %rd1, 32; "
                   "cvt.u32.u64 %r1, %rd1;"),
            2u);
  EXPECT_EQ(result("mov.u32 %r2, -7; div.s32 %r1, %r2, 2;"), static_cast<uint32_t>(-3));
  EXPECT_EQ(result("mov.u32 %r2, -7; rem.s32 %r1, %r2, 4;"), static_cast<uint32_t>(-3));
  EXPECT_EQ(result("mov.u32 %r2, -7; max.s32 %r1, %r2, 4;"), 4u);
  EXPECT_EQ(result("mov.u32 %r2, -7; max.u32 %r1, %r2, 4;"), static_cast<uint32_t>(-7));
  EXPECT_EQ(result("mov.u32 %r2, -7; abs.s32 %r1, %r2;"), 7u);
}

TEST(PtxArithmetic, FloatsRoundAsIeeeSays) {
  EXPECT_EQ(float_result("mov.f32 %f2, 0f3F800001; mul.rn.f32 %f1, %f2, %f2;"),
            bits(0x1.000002p0f * 0x1.000002p0f));
  // A fused product has no rounding of its own.
  EXPECT_EQ(float_result("mov.f32 %f2, 0f3F800001; fma.rn.f32 %f1, %f2, %f2, 0fBF800002;"),
            bits(std::fma(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f)));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f00000001; add.f32 %f1, %f2, %f2;"), 2u);  // subnormal
  EXPECT_EQ(float_result("mov.f32 %f2, 0f40400000; rcp.rn.f32 %f1, %f2;"), bits(1.0f / 3));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f40400000; sqrt.rn.f32 %f1, %f2;"), bits(std::sqrt(3.0f)));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f7F800000; sub.f32 %f1, %f2, %f2;"), kNaN);
  EXPECT_EQ(float_result("mov.f32 %f2, 0fBF800000; mov.f32 %f3, 0f40400000; "
                         "copysign.f32 %f1, %f2, %f3;"),
            bits(-3));
}

TEST(PtxArithmetic, ExtremaPreferNumbersAndKnowTheSignOfZero) {
  EXPECT_EQ(float_result("mov.f32 %f2, 0f7FC00000; max.f32 %f1, %f2, 0f3F800000;"), bits(1));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f7FC00000; max.NaN.f32 %f1, %f2, 0f3F800000;"), kNaN);
  EXPECT_EQ(float_result("mov.f32 %f2, 0fFF800000; max.NaN.f32 %f1, %f2, 0f3F800000;"), bits(1));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f7FC00000; min.f32 %f1, 0f3F800000, %f2;"), bits(1));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f80000000; max.f32 %f1, %f2, 0f00000000;"), bits(0.0f));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f00000000; min.f32 %f1, %f2, 0f80000000;"), bits(-0.0f));
  EXPECT_EQ(float_result("mov.f32 %f2, 0f7FC00000; max.f32 %f1, %f2, %f2;"), kNaN);
}

TEST(PtxArithmetic, ShiftsPastTheWidthGiveZerosOrSigns) {
  EXPECT_EQ(result("mov.u32 %r2, 1; mov.u32 %r3, 40; shl.b32 %r1, %r2, %r3;"), 0u);
  EXPECT_EQ(result("mov.u32 %r2, -4; mov.u32 %r3, 40; shr.s32 %r1, %r2, %r3;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, -4; mov.u32 %r3, 40; shr.u32 %r1, %r2, %r3;"), 0u);
  EXPECT_EQ(result("mov.u32 %r2, 0x12345678; mov.u32 %r3, 0x9abcdef0; "
                   "prmt.b32 %r1, %r2, %r3, 0x7140;"),
            0x9a56f078u);
  EXPECT_EQ(result("mov.u32 %r2, 0x80; prmt.b32 %r1, %r2, 0, 0x8888;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, 0xf0; mov.u32 %r3, 0xcc; lop3.b32 %r1, %r2, %r3, 0xaa, 0xc0;"),
            0xc0u);
  EXPECT_EQ(result("mov.u32 %r2, 0xf00; bfe.s32 %r1, %r2, 8, 4;"), 0xffffffffu);
  EXPECT_EQ(result("mov.u32 %r2, 5; bfi.b32 %r1, %r2, -1, 4, 8;"), 0xfffff05fu);
  EXPECT_EQ(result("mov.u32 %r2, 0xff; popc.b32 %r3, %r2; clz.b32 %r4, %r2; "
                   "add.s32 %r1, %r3, %r4;"),
            32u);
  EXPECT_EQ(result("mov.u32 %r2, 0x80000000; mov.u32 %r3, 1; shf.l.wrap.b32 %r1, %r2, %r3, 1;"),
            3u);
}

TEST(PtxArithmetic, ConversionsSaturateAndRound) {
  EXPECT_EQ(result("mov.f32 %f2, 0f4F800000; cvt.rzi.s32.f32 %r1, %f2;"), 0x7fffffffu);
  EXPECT_EQ(result("mov.f32 %f2, 0fBFE00000; cvt.rzi.s32.f32 %r1, %f2;"), 0xffffffffu);
  EXPECT_EQ(result("mov.f32 %f2, 0f40200000; cvt.rni.s32.f32 %r1, %f2;"), 2u);
  EXPECT_EQ(result("mov.f32 %f2, 0f7FC00000; cvt.rzi.u32.f32 %r1, %f2;"), 0u);
  EXPECT_EQ(float_result("mov.u32 %r2, 16777217; cvt.rn.f32.u32 %f1, %r2;"), bits(16777216));
  EXPECT_EQ(float_result("mov.f64 %fd2, 0d3FD5555555555555; cvt.rn.f32.f64 %f1, %fd2;"),
            bits(1.0f / 3));
  // A register may be wider than the type.
  EXPECT_EQ(result("mov.u32 %r2, 0x1ff; cvt.s32.s8 %r1, %r2;"), 0xffffffffu);
  EXPECT_EQ(result("mov.f32 %f2, 0f3FC08000; mov.f32 %f3, 0f40000000; "
                   "cvt.rn.bf16x2.f32 %r1, %f3, %f2;"),
            0x40003fc0u);  // a tie goes to even
  EXPECT_EQ(float_result("mov.b16 %rs1, 0x3c00; cvt.f32.f16 %f1, %rs1;"), bits(1));
}

TEST(PtxArithmetic, ComparisonsOfNaN) {
  auto chosen = [](const std::string& comparison) {
    return result("mov.f32 %f2, 0f7FC00000; mov.f32 %f3, 0f3F800000; setp." + comparison +
                  ".f32 %p1, %f2, %f3; selp.b32 %r1, 1, 0, %p1;");
  };
  EXPECT_EQ(chosen("lt"), 0u);
  EXPECT_EQ(chosen("ltu"), 1u);
  EXPECT_EQ(chosen("ne"), 0u);
  EXPECT_EQ(chosen("neu"), 1u);
  EXPECT_EQ(chosen("nan"), 1u);
  EXPECT_EQ(result("mov.u32 %r2, -1; setp.lt.and.s32 %p1|%p2, %r2, 0, 0; "
                   "selp.b32 %r1, 1, 2, %p1;"),
            2u);
}

TEST(PtxArithmetic, PartsOfRegisters) {
  EXPECT_EQ(result("mov.u32 %r2, 1; mov.u32 %r3, 2; mov.b64 %rd1, {%r2, %r3}; "
                   "mov.b64 {%r4, %r1}, %rd1;"),
            2u);
  EXPECT_EQ(result("mov.u32 %r2, 0x10002; mov.b32 {%rs1, %rs2}, %r2; cvt.u32.u16 %r1, %rs2;"), 1u);
}

TEST(PtxArithmetic, UnknownInstructionsAreNamedWithTheirLine) {
  expect_error(small_kernel("frobnicate.b32 %r1, %r2;"), "the instruction frobnicate is not known");
  expect_error(small_kernel("frobnicate.b32 %r1, %r2;"), "line 17");
  expect_error(small_kernel("add.ftz.f32 %f1, %f2, %f3;"), "add with .ftz is not known");
  expect_error(small_kernel("add.s32 %r1, %r2;"), "too few operands");
  expect_error(small_kernel("add.s32 %r1, %r2, %r99;"), "%r99 is not declared");
  expect_error(small_kernel("add.s32 %rd1, %r2, %r3;"), "%rd1 has 8 bytes where 4 are needed");
  expect_error(small_kernel("bra nowhere;"), "there is no label nowhere");
}

}  // namespace
}  // namespace banyan::ptx::arithmetic_test
