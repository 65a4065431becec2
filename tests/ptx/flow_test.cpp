// Lanes, warps and blocks: divergence, barriers, memory, and what must be found.
#include <gtest/gtest.h>

#include <numeric>

#include "ptx/small_kernel.h"

namespace banyan::ptx::flow_test {
namespace {

constexpr const char* kShared = ".shared .align 16 .b8 bytes[1024];";
// %r10: the address of the thread's word in shared memory.
constexpr const char* kOwnWord =
    "mov.u32 %r11, bytes; shl.b32 %r10, %r0, 2; "
    "add.s32 %r10, %r10, %r11;";

TEST(PtxFlow, LanesDivergeAndComeTogether) {
  // Lane i counts i rounds; then all vote.
  std::string body = R"(
  mov.u32 %r1, 0;
  loop: setp.ge.u32 %p1, %r1, %r0;
  @%p1 bra done;
  add.s32 %r1, %r1, 1;
  bra.uni loop;
  done: vote.sync.ballot.b32 %r2, %p1, -1;
  popc.b32 %r2, %r2;
  mad.lo.s32 %r1, %r2, 100, %r1;
  )";
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint32_t> out =
        run_small(small_kernel(body + output("%r1")), {.threads = 32, .seed = seed});
    for (uint32_t lane = 0; lane < 32; ++lane) ASSERT_EQ(out[lane], 3200 + lane);
  }
}

TEST(PtxFlow, LabelsAndRegistersOfBracesAreTheirOwn) {
  std::string add =
      "{ .reg .b32 x; mov.u32 x, 0; again: add.s32 x, x, 1; add.s32 %r1, %r1, 1; "
      ".reg .pred p; setp.lt.u32 p, x, 3; @p bra again; }\n";
  EXPECT_EQ(run_small(small_kernel("mov.u32 %r1, 0;" + add + add + output("%r1")))[0], 6u);
}

// Each thread reads the word of the next one.
std::string rotation(const std::string& barrier) {
  return small_kernel(std::string(kOwnWord) + "st.shared.u32 [%r10], %r0;" + barrier + R"(
  add.s32 %r12, %r0, 1; and.b32 %r12, %r12, 127; shl.b32 %r12, %r12, 2; add.s32 %r12, %r12, %r11;
  ld.shared.u32 %r1, [%r12];)" +
                          output("%r1"),
                      kShared);
}

// For how many seeds of 20 the outputs are those of a correct kernel.
int right_rotations(const std::string& barrier) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint32_t> out = run_small(rotation(barrier), {.threads = 128, .seed = seed});
    bool all = true;
    for (uint32_t i = 0; i < 128; ++i) all = all && out[i] == (i + 1) % 128;
    right += all;
  }
  return right;
}

TEST(PtxFlow, BarriersOrderWarpsAndAMissingOneShows) {
  EXPECT_EQ(right_rotations("bar.sync 0;"), 20);
  EXPECT_EQ(right_rotations("barrier.sync.aligned 3, 128;"), 20);
  EXPECT_LT(right_rotations(""), 10);
}

TEST(PtxFlow, NamedBarriersOfSomeWarps) {
  // The upper half produces and goes on at once; the lower half waits.
  std::string body = std::string(kOwnWord) + R"(
  setp.lt.u32 %p1, %r0, 64;
  @%p1 bra consume;
  st.shared.u32 [%r10], %r0;
  bar.arrive 1, 128;
  ret;
  consume: bar.sync 1, 128;
  ld.shared.u32 %r1, [%r10+256];)" +
                     output("%r1");
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<uint32_t> out =
        run_small(small_kernel(body, kShared), {.threads = 128, .seed = seed});
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], i + 64);
  }
}

TEST(PtxFlow, BarriersGatherVotes) {
  auto votes = [](const std::string& vote) {
    std::string body = "setp.gt.u32 %p1, %r0, 90; bar.red." + vote + "selp.b32 %r1, 1, %r1, %p2;";
    return run_small(
        small_kernel("mov.u32 %r1, 0; setp.ne.u32 %p2, %r0, %r0;" + body + output("%r1")),
        {.threads = 96});
  };
  EXPECT_EQ(votes("or.pred %p2, 1, 96, %p1;"), std::vector<uint32_t>(96, 1));
  EXPECT_EQ(votes("and.pred %p2, 1, %p1;"), std::vector<uint32_t>(96, 0));
  EXPECT_EQ(votes("popc.u32 %r1, 1, 96, %p1;"), std::vector<uint32_t>(96, 5));
}

TEST(PtxFlow, DeadlocksAreFoundWithEveryWarpsPlace) {
  std::string body =
      "setp.lt.u32 %p1, %r0, 32; @%p1 bra one; bar.sync 1, 64; ret; "
      "one: bar.sync 2, 64;";
  Launch launch{.threads = 64};
  expect_error(small_kernel(body), "nothing can get on", launch);
  expect_error(small_kernel(body), "warp 1, line 17: bar.sync 1, 64, waiting at a barrier", launch);
  expect_error(small_kernel("setp.lt.u32 %p1, %r0, 3; @%p1 bra one; bar.sync 1; "
                            "one: shfl.sync.down.b32 %r1, %r0, 1, 31, -1; bar.sync 1;"),
               "wait for each other at different lines");
  expect_error(small_kernel("setp.lt.u32 %p1, %r0, 32; @%p1 bra one; bar.sync 1, 96; ret; "
                            "one: bar.sync 1, 64;"),
               "barrier 1 expects", launch);
}

TEST(PtxFlow, ShufflesMoveValuesBetweenLanes) {
  auto run = [](const std::string& mode, const std::string& step, const std::string& bounds) {
    return run_small(small_kernel("shfl.sync." + mode + ".b32 %r1|%p1, %r0, " + step + ", " +
                                  bounds + ", -1;" + output("%r1")));
  };
  std::vector<uint32_t> down = run("down", "4", "31"), up = run("up", "4", "0");
  std::vector<uint32_t> across = run("bfly", "16", "31"), first = run("idx", "0", "0x181f");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(down[lane], lane < 28 ? lane + 4 : lane);
    EXPECT_EQ(up[lane], lane < 4 ? lane : lane - 4);
    EXPECT_EQ(across[lane], lane ^ 16);
    EXPECT_EQ(first[lane], lane / 8 * 8);
  }
}

TEST(PtxFlow, OneLaneIsElected) {
  std::vector<uint32_t> out = run_small(
      small_kernel("mov.u32 %r1, 0; elect.sync %r2|%p1, -1; @%p1 mov.u32 %r1, 7;" + output("%r1")));
  EXPECT_EQ(std::accumulate(out.begin(), out.end(), 0u), 7u);
}

TEST(PtxFlow, MemoryOutsideOfItsBoundsIsAnError) {
  std::string far = std::string(kOwnWord) + "ld.shared.u32 %r1, [%r10+1020];";
  expect_error(small_kernel(far, kShared), "lane 1: 4 bytes at 0x800 are outside of the shared");
  expect_error(small_kernel(far, kShared), "line 17: ld.shared.u32 %r1, [%r10+1020]");
  expect_error(small_kernel("ld.global.u32 %r1, [%rd0+2];"), "is not a multiple of 4");
  expect_error(small_kernel("mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];"),
               "outside of its memory");
  expect_error(small_kernel("ld.local.u32 %r1, [%rd0];", ".local .align 8 .b8 depot[8];"),
               "outside of its memory");
}

TEST(PtxFlow, GenericAddressesReachSharedAndLocalMemory) {
  std::string body = std::string(kOwnWord) + R"(
  cvt.u64.u32 %rd1, %r10; cvta.shared.u64 %rd1, %rd1; st.u32 [%rd1], %r0;
  mov.u64 %rd2, depot; cvta.local.u64 %rd2, %rd2; st.u32 [%rd2+4], %r0;
  ld.shared.u32 %r1, [%r10]; mov.u64 %rd3, depot; ld.local.u32 %r2, [%rd3+4];
  add.s32 %r1, %r1, %r2;)" +
                     output("%r1");
  std::string variables = std::string(kShared) + ".local .align 8 .b8 depot[8];";
  std::vector<uint32_t> out = run_small(small_kernel(body, variables));
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], 2 * lane);
}

TEST(PtxFlow, SharedMemoryBeginsAsNaNAndTheDynamicArrayIsAligned) {
  std::string body =
      "mov.u32 %r2, dynamic; ld.shared.u32 %r1, [%r2+508]; and.b32 %r3, %r2, 1023; "
      "add.s32 %r1, %r1, %r3;" +
      output("%r1");
  EXPECT_EQ(run_small(small_kernel(body, ".shared .align 16 .b8 bytes[16];"),
                      {.threads = 32, .shared_bytes = 512})[0],
            0xffffffffu);
  expect_error(small_kernel(body), "outside of the shared memory",
               {.threads = 32, .shared_bytes = 508});
}

TEST(PtxFlow, AtomicsOfAllBlocksAddUp) {
  Module module(
      small_kernel("mov.u64 %rd1, 1; atom.global.add.u64 %rd2, [%rd0], %rd1; "
                   "red.global.max.s32 [%rd0+8], %r0;"));
  uint64_t sums[2] = {0, 0};
  launch(module, "test", {.blocks = 7, .threads = 96, .parameters = parameter_block(&sums[0])});
  EXPECT_EQ(sums[0], 7u * 96);
  EXPECT_EQ(sums[1], 95u);
}

TEST(PtxFlow, BlocksOfAClusterReadEachOthersSharedMemory) {
  std::string body = std::string(kOwnWord) + R"(
  mov.u32 %r2, %cluster_ctarank; mad.lo.s32 %r3, %r2, 100, %r0; st.shared.u32 [%r10], %r3;
  barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  xor.b32 %r4, %r2, 1; mapa.shared::cluster.u32 %r5, %r10, %r4;
  ld.shared::cluster.u32 %r1, [%r5];
  FINISH
  setp.ne.u32 %p1, %r2, 0; @%p1 ret;)" +
                     output("%r1");
  auto with = [&](std::string_view finish) {
    std::string text = body;
    return small_kernel(text.replace(text.find("FINISH"), 6, finish), kShared);
  };
  Launch launch{.blocks = 4, .threads = 64, .cluster = 2};
  std::string barrier = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
  for (launch.seed = 1; launch.seed <= 20; ++launch.seed) {
    std::vector<uint32_t> out = run_small(with(barrier), launch);
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(out[i], 100 + i);
  }
  expect_error(with(""), "has exited, and its shared memory with it", launch);
  expect_error(with(""), "warp", launch);
  expect_error(small_kernel("", kShared), "3 blocks are no clusters of 2",
               {.blocks = 3, .threads = 32, .cluster = 2});
}

}  // namespace
}  // namespace banyan::ptx::flow_test
