// The host emulation of a CUDA device, and the math functions of the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "kernels/cuda/emulated/device.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/select_best.h"

namespace banyan::cuda::cuda_emulated_test {
namespace {

using emulated::Device;

// Every thread reads what its neighbour writes in the same phase, or in the one before.
struct ReadsNeighbours {
  int* values;
  int64_t* sum;
  bool within_a_phase;
  Shape shape() const { return {.blocks = 1}; }

  template <class Block>
  void operator()(Block& block) const {
    constexpr int kThreads = Block::kThreads;
    block.each([&](int thread) { values[thread] = 0; });
    int64_t seen = 0;
    auto read = [&](int thread) { seen += values[(thread + 1) % kThreads]; };
    block.each([&](int thread) {
      values[thread] = thread;
      if (within_a_phase) read(thread);
    });
    if (!within_a_phase) block.each(read);
    *sum = seen;
  }
};

TEST(CudaEmulated, ARaceWithinAPhaseGivesDifferentResults) {
  auto results = [](bool within_a_phase) {
    std::set<int64_t> sums;
    for (int run = 0; run < 20; ++run) {
      std::vector<int> values(kBlockThreads);
      int64_t sum = 0;
      Device::launch(nullptr, ReadsNeighbours{values.data(), &sum, within_a_phase});
      sums.insert(sum);
    }
    return sums;
  };
  EXPECT_GT(results(true).size(), 1u);
  EXPECT_EQ(results(false), (std::set<int64_t>{kBlockThreads * (kBlockThreads - 1) / 2}));
}

struct SumsOfBlocks {
  float* sums;
  int64_t items;
  Shape shape() const { return {.blocks = items, .shared_bytes = 4, .scratch_bytes = 4}; }

  template <class Block>
  void operator()(Block& block) const {
    for (int64_t i = block.index(); i < items; i += block.count()) {
      float sum = sum_over(block, 1000, [&](int64_t c) { return static_cast<float>(c * i); });
      block.one([&] { sums[i] = sum; });
    }
  }
};

TEST(CudaEmulated, BlocksTakeAllItemsOnce) {
  for (int64_t items : {1, 4, 5, 23}) {
    std::vector<float> sums(static_cast<size_t>(items), -1);
    Device::launch(nullptr, SumsOfBlocks{sums.data(), items});
    for (int64_t i = 0; i < items; ++i) {
      EXPECT_EQ(sums[static_cast<size_t>(i)], static_cast<float>(i * 499500)) << items;
    }
  }
}

struct Selects {
  const std::vector<uint32_t>& orders;
  int64_t count;
  std::vector<int64_t>& selected;
  Shape shape() const { return {.blocks = 1, .shared_bytes = kBlockThreads * sizeof(int64_t)}; }

  template <class Block>
  void operator()(Block& block) const {
    select_best(
        block, std::ssize(orders), count, block.template shared<int64_t>(),
        [&](int64_t i) { return orders[static_cast<size_t>(i)]; },
        [&](int64_t rank, int64_t i) { selected[static_cast<size_t>(rank)] = i; });
  }
};

TEST(CudaEmulated, SelectsTheBestAndTheFirstAmongEquals) {
  std::mt19937 random(1);
  for (int64_t total : {1, 7, 128, 1000}) {
    std::vector<uint32_t> orders(static_cast<size_t>(total));
    for (uint32_t& order : orders) {
      order = random() % 5 == 0 ? 0xffffffffu : random() % 3 * 0x40000000u;
    }
    std::vector<int64_t> expected(orders.size());
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int64_t>(i);
    std::ranges::stable_sort(expected, std::greater<>(),
                             [&](int64_t i) { return orders[static_cast<size_t>(i)]; });
    for (int64_t count : {int64_t{1}, total / 2 + 1, total}) {
      std::vector<int64_t> best(expected.begin(), expected.begin() + count);
      std::ranges::sort(best);
      std::vector<int64_t> selected(static_cast<size_t>(count), -1);
      Device::launch(nullptr, Selects{orders, count, selected});
      EXPECT_EQ(selected, best) << total << ", " << count;
    }
  }
}

// Of a result near `expected`, in units of the last place of an f32.
double ulps(float actual, double expected) {
  int exponent = 0;
  std::frexp(static_cast<float>(expected), &exponent);
  return std::fabs(actual - expected) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

TEST(CudaMath, FunctionsAreNearTheExactOnes) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<float> exponent(-103, 88.5f), value(-30, 30);
  std::uniform_real_distribution<float> angle(0, 2e6f);
  for (int i = 0; i < 100000; ++i) {
    float x = exponent(random), z = value(random), turn = angle(random);
    ASSERT_LE(ulps(exp(x), std::exp(double{x})), 2) << x;
    ASSERT_LE(ulps(softplus(z), std::log1p(std::exp(double{z}))), 3) << z;
    ASSERT_LE(std::fabs(soften(z, 10) - 10 * std::tanh(double{z} / 10)), 2e-6) << z;
    CosSin turned = cos_sin(turn);
    ASSERT_LE(ulps(turned.cos, std::cos(double{turn})), 1) << turn;
    ASSERT_LE(ulps(turned.sin, std::sin(double{turn})), 1) << turn;
    ASSERT_NEAR(log(1 + double{turn}), std::log(1 + double{turn}), 1e-14);
  }
}

TEST(CudaMath, ExpHasTheLimitsOfTheExactOne) {
  EXPECT_EQ(exp(0), 1);
  EXPECT_EQ(exp(-kInfinity), 0);
  EXPECT_EQ(exp(-200), 0);
  EXPECT_EQ(exp(kInfinity), kInfinity);
  EXPECT_EQ(exp(89), kInfinity);
  EXPECT_TRUE(is_nan(exp(not_a_number())));
  EXPECT_EQ(floor(-0.5f), -1);
  EXPECT_EQ(floor(2.5f), 2);
}

}  // namespace
}  // namespace banyan::cuda::cuda_emulated_test
