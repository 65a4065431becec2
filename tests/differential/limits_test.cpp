// The loops that measure a machine's limits perform the operations that they count.
#include "kernels/limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "differential/emulated_tiles.h"
#include "kernels/select.h"
#if BANYAN_X86_LEVEL >= 1
#include "kernels/x86/limits.h"
#endif

namespace banyan::limits_test {
namespace {

TEST(Limits, EveryTableHasProbesAndFallsBackOnProductsOfF32) {
  for (const std::string& name : available_kernels()) {
    SCOPED_TRACE(name);
    const LimitProbes& probes = limit_probes(**select_kernels(name));
    for (Operand operand : {Operand::kF32, Operand::kBF16, Operand::kInt8}) {
      auto found = probes_of(probes, operand);
      ASSERT_FALSE(found.empty());
      bool own = std::ranges::count(probes.products, operand, &ProductProbe::operand) > 0;
      for (const ProductProbe& probe : found) {
        EXPECT_EQ(probe.operand, own ? operand : Operand::kF32) << probe.name;
        EXPECT_EQ(probe.run(6), 2 * probe.run(3)) << probe.name;
      }
    }
  }
}

TEST(Limits, ReadsStayWithinTheirBytes) {
  // Too short a block, or an access beyond it, is for the address sanitizer to find.
  auto bytes = std::make_unique<std::byte[]>(4096);
  for (const std::string& name : available_kernels()) {
    const LimitProbes& probes = limit_probes(**select_kernels(name));
    for (size_t ahead : {0, 1024}) probes.read(bytes.get(), 4096, ahead);
  }
}

#if BANYAN_X86_LEVEL >= 1
TEST(Limits, TilesDoTheOperationsThatTheyCount) {
  using test::EmulatedTiles;
  int64_t before = EmulatedTiles::products;
  double operations = simd::multiply_tiles<EmulatedTiles, false, 2>(5);
  EXPECT_EQ(operations, 2.0 * static_cast<double>(EmulatedTiles::products - before));
  before = EmulatedTiles::products;
  operations = simd::multiply_tiles<EmulatedTiles, true, 2>(3);
  EXPECT_EQ(operations, 2.0 * static_cast<double>(EmulatedTiles::products - before));
}
#endif

TEST(Limits, AMeterFindsRatesThatCanBe) {
  ThreadPool threads(2);
  LimitMeter meter(threads, 1e-3, size_t{8} << 20);
  const LimitProbes& probes = limit_probes(**select_kernels("auto"));
  MachineLimits limits = meter.limits(probes);
  EXPECT_GT(limits.bytes_per_s, 1e8);
  for (double rate : limits.operations_per_s) {
    EXPECT_GT(rate, 1e8);
    EXPECT_LT(rate, 1e15);
  }
  double barrier = meter.barrier_s();
  EXPECT_GT(barrier, 0);
  EXPECT_LT(barrier, 1);
}

}  // namespace
}  // namespace banyan::limits_test
