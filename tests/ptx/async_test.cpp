// Copies and barriers that take effect later: right kernels are right for every seed, and what is
// missing from a wrong one is found.
#include <gtest/gtest.h>

#include "ptx/small_kernel.h"

namespace banyan::ptx::async_test {
namespace {

constexpr const char* kShared =
    ".shared .align 1024 .b8 bytes[2048]; .shared .align 8 .b8 bar[16];";

// How many seeds of 30 give the outputs 3 * thread, from inputs that follow the outputs.
int right_runs(const std::string& text, Launch launch = {.threads = 64}) {
  int right = 0;
  Module module(text);
  for (launch.seed = 1; launch.seed <= 30; ++launch.seed) {
    alignas(16) uint32_t data[128];
    for (uint32_t i = 0; i < 64; ++i) data[i] = 0, data[64 + i] = 3 * i;
    launch.parameters = parameter_block(&data[0]);
    try {
      ptx::launch(module, "test", launch);
    } catch (const Error&) {
      continue;
    }
    bool all = true;
    for (uint32_t i = 0; i < 64; ++i) all = all && data[i] == 3 * i;
    right += all;
  }
  return right;
}

// One thread copies 256 bytes; all wait for them.
const std::string kBulkBody = R"(
  mov.u32 %r1, bar; mov.u32 %r2, bytes;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra begun;
  mbarrier.init.shared::cta.b64 [%r1], 1;
  fence.proxy.async;
  begun: bar.sync 0;
  @%p1 bra issued;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
  add.s64 %rd1, %rd0, 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r1];
  issued:
  again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
  shl.b32 %r3, %r0, 2; add.s32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
  )" + output("%r4");
const std::string kBulk = small_kernel(kBulkBody, kShared);

TEST(PtxAsync, BulkCopiesComeWhenTheBarrierSays) {
  EXPECT_EQ(right_runs(kBulk), 30);
}

TEST(PtxAsync, AMissingWaitForABulkCopyShows) {
  EXPECT_LT(right_runs(replaced(kBulk, "@!%p2 bra again;", "")), 20);
  // What is expected too late or too little lets the barrier pass before the bytes have come.
  EXPECT_LT(right_runs(replaced(kBulk, ".expect_tx.shared::cta.b64 _, [%r1], 256;",
                                ".shared::cta.b64 _, [%r1]; mbarrier.expect_tx.relaxed.cta."
                                "shared::cta.b64 [%r1], 256;")),
            30);
}

TEST(PtxAsync, ABarrierThatIsNeverCompleteIsADeadlock) {
  Launch launch{.threads = 64};
  expect_error(replaced(kBulk, "_, [%r1], 256;", "_, [%r1], 272;"), "nothing can get on", launch);
  expect_error(replaced(kBulk, "_, [%r1], 256;", "_, [%r1], 272;"), "mbarrier.try_wait", launch);
  expect_error(replaced(kBulk, "[%r1], 1;", "[%r1], 2;"), "nothing can get on", launch);
}

TEST(PtxAsync, MisuseOfBarriersIsNamed) {
  Launch launch{.threads = 64};
  expect_error(replaced(kBulk, "fence.proxy.async;", ""), "no fence has shown the mbarrier",
               launch);
  expect_error(replaced(kBulk, "mbarrier.init.shared::cta.b64 [%r1], 1;", ""),
               "there is no initialised mbarrier", launch);
  expect_error(replaced(kBulk, "%rd0, 256;", "%rd0, 264;"), "must be multiples of 16", launch);
  expect_error(replaced(kBulk, "256, [%r1];", "250, [%r1];"), "must be multiples of 16", launch);
  expect_error(replaced(kBulk, "@!%p2 bra again;", "ret;"),
               "a bulk copy into its memory is in flight", launch);
  expect_error(replaced(kBulk, "issued:", "issued: st.shared.u32 [%r1+4], %r0;"),
               "reaches the mbarrier", launch);
  expect_error(replaced(kBulk, "issued:", "issued: mbarrier.arrive.shared::cta.b64 %rd2, [%r1];"),
               "arrivals at an mbarrier that misses", launch);
}

TEST(PtxAsync, ABulkCopySpoilsAtOnceWhatItOverwrites) {
  // The next copy begins when the first thread, or everybody, has read the bytes of this one.
  auto with = [](const std::string& barrier) {
    return replaced(kBulk, "ld.shared.u32 %r4, [%r3];", "ld.shared.u32 %r4, [%r3];" + barrier + R"(
  @%p1 bra wait;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r1];
  wait: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1], 1; @!%p3 bra wait;)");
  };
  EXPECT_EQ(right_runs(with("bar.sync 0;")), 30);
  EXPECT_LT(right_runs(with("")), 30);
}

TEST(PtxAsync, SmallCopiesComeByGroups) {
  std::string body = R"(
  mov.u32 %r2, bytes; shl.b32 %r3, %r0, 2; add.s32 %r3, %r3, %r2; mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd1, %rd0;
  cp.async.ca.shared.global [%r3], [%rd1+256], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r3+1024], [%rd1], 4, 0;
  cp.async.commit_group;
  cp.async.wait_group 1;
  ld.shared.u32 %r4, [%r3];
  cp.async.wait_group 0;
  ld.shared.u32 %r5, [%r3+1024]; add.s32 %r4, %r4, %r5;
  )" + output("%r4");
  std::string text = small_kernel(body, kShared);
  EXPECT_EQ(right_runs(text), 30);
  EXPECT_LT(right_runs(replaced(text, "wait_group 1;", "wait_group 2;")), 30);
  expect_error(replaced(text, "cp.async.wait_group 0;", ""), "a copy of cp.async is in flight",
               {.threads = 64});
}

TEST(PtxAsync, ABarrierWaitsForSmallCopies) {
  std::string body = R"(
  mov.u32 %r1, bar; mov.u32 %r2, bytes;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra begun;
  mbarrier.init.shared::cta.b64 [%r1], 64;
  begun: bar.sync 0;
  shl.b32 %r3, %r0, 2; add.s32 %r3, %r3, %r2; mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd1, %rd0;
  cp.async.ca.shared.global [%r3], [%rd1+256], 4;
  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];
  again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
  xor.b32 %r4, %r0, 63; shl.b32 %r4, %r4, 2; add.s32 %r4, %r4, %r2; ld.shared.u32 %r5, [%r4];
  mov.u32 %r4, 189; sub.u32 %r4, %r4, %r5;
  )" + output("%r4");
  std::string text = small_kernel(body, kShared);
  EXPECT_EQ(right_runs(text), 30);
  EXPECT_LT(right_runs(replaced(text, "@!%p2 bra again;", "")), 30);
  expect_error(replaced(text, "[%r1], 64;", "[%r1], 65;"), "nothing can get on", {.threads = 64});
}

// %r5 is the rank. One thread of each block goes on; the others go to `begun`.
const std::string kClusterBegin = R"(
  mov.u32 %r1, bar; mov.u32 %r2, bytes; mov.u32 %r5, %cluster_ctarank;
  setp.ne.u32 %p1, %r0, 0; setp.ne.u32 %p4, %r5, 0;
  @%p1 bra begun;
)";

TEST(PtxAsync, BlocksOfAClusterArriveAtEachOthersBarriers) {
  // Block 0 waits until all threads of block 1 have stored into its shared memory.
  std::string body = kClusterBegin + R"(
  mbarrier.init.shared::cta.b64 [%r1], 64; fence.mbarrier_init.release.cluster;
  begun: barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
  shl.b32 %r3, %r0, 2; add.s32 %r3, %r3, %r2;
  @!%p4 bra again;
  mapa.shared::cluster.u32 %r6, %r3, 0; mapa.shared::cluster.u32 %r7, %r1, 0;
  mul.lo.s32 %r8, %r0, 3; st.shared::cluster.u32 [%r6], %r8;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];
  bra done;
  again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
  ld.shared.u32 %r4, [%r3];
  )" + output("%r4") +
                     "done:";
  std::string text = small_kernel(body, kShared);
  Launch launch{.blocks = 2, .threads = 64, .cluster = 2};
  EXPECT_EQ(right_runs(text, launch), 30);
  EXPECT_LT(right_runs(replaced(text, "@!%p2 bra again;", ""), launch), 30);
}

TEST(PtxAsync, StoresToAnotherBlockComeWhenItsBarrierSays) {
  // Block 0 waits for the bytes that the threads of block 1 store into its shared memory.
  std::string body = kClusterBegin + R"(
  mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 512;
  begun: barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
  shl.b32 %r3, %r0, 3; add.s32 %r3, %r3, %r2;
  @!%p4 bra again;
  mapa.shared::cluster.u32 %r6, %r3, 0; mapa.shared::cluster.u32 %r7, %r1, 0;
  mul.lo.s32 %r8, %r0, 3;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r6], {%r0, %r8}, [%r7];
  bra done;
  again: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;
  @!%p2 bra again;
  ld.shared.u32 %r4, [%r3+4];
  )" + output("%r4") +
                     "done:";
  std::string text = small_kernel(body, kShared);
  Launch launch{.blocks = 2, .threads = 64, .cluster = 2};
  EXPECT_EQ(right_runs(text, launch), 30);
  EXPECT_LT(right_runs(replaced(text, "@!%p2 bra again;", ""), launch), 30);
  EXPECT_EQ(right_runs(replaced(text, ", 512;", ", 256;"), launch), 0);
  expect_error(replaced(text, "[%r6], {", "[%r6+4], {"), "8 bytes at", launch);
  expect_error(replaced(text, "@!%p2 bra again;", "ret;"), "in flight", launch);
}

}  // namespace
}  // namespace banyan::ptx::async_test
