// The passes over all logits, against sorting and summing them directly.
#include "kernels/logit_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace banyan::logit_scan_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Few different values, so that many are equal, and some that are impossible.
std::vector<float> some_logits(size_t size, uint64_t seed) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) {
    double x = uniform(seed, i, 0);
    logits[i] = x < 0.1 ? -kInfinity : std::floor(static_cast<float>(40 * x)) / 4;
  }
  return logits;
}

TEST(LogitScan, FindsTheTopInTheirOrder) {
  std::vector<float> maxima, scratch;
  std::vector<TopLogit> top, all;
  for (size_t size : {1u, 63u, 64u, 65u, 1000u, 20000u}) {
    std::vector<float> logits = some_logits(size, size);
    all.clear();
    for (size_t t = 0; t < size; ++t) {
      if (logits[t] > -kInfinity) all.push_back({logits[t], static_cast<TokenId>(t)});
    }
    std::ranges::stable_sort(all, std::greater<>(), &TopLogit::logit);
    find_block_maxima(logits, maxima);
    for (size_t count : {0u, 1u, 2u, 20u, 300u, 20000u, 30000u}) {
      find_top_logits(logits, maxima, count, scratch, top);
      ASSERT_EQ(top.size(), std::min(count, all.size()));
      for (size_t i = 0; i < top.size(); ++i) {
        ASSERT_EQ(top[i].token, all[i].token) << size << ' ' << count << ' ' << i;
        ASSERT_EQ(top[i].logit, all[i].logit);
      }
    }
  }
}

TEST(LogitScan, WeighsAsTheExponentialDoes) {
  for (float temperature : {0.3f, 1.0f, 7.0f}) {
    for (int i = 0; i < 20000; ++i) {
      float logit = -87.0f * temperature * static_cast<float>(uniform(3, i, 0));
      double expected = std::exp(static_cast<double>(logit / temperature));
      EXPECT_NEAR(softmax_weight(logit, 0, temperature), expected, 2.5e-7 * expected) << logit;
    }
    EXPECT_EQ(softmax_weight(5, 5, temperature), 1.0f);
    EXPECT_EQ(softmax_weight(-1e30f, 5, temperature), 0.0f);
    EXPECT_EQ(softmax_weight(-kInfinity, 5, temperature), 0.0f);
  }
}

TEST(LogitScan, SumsAllWeights) {
  std::vector<float> maxima;
  for (size_t size : {1u, 64u, 100u, 5000u}) {
    std::vector<float> logits = some_logits(size, 100 + size), weights(size);
    std::fill_n(logits.begin(), size / 2, -kInfinity);
    logits.back() = 1;
    float best = std::ranges::max(logits);
    find_block_maxima(logits, maxima);
    find_softmax_weights(logits, best, 2, weights);
    double sum = 0;
    for (size_t t = 0; t < size; ++t) {
      EXPECT_EQ(weights[t], softmax_weight(logits[t], best, 2)) << t;
      sum += weights[t];
    }
    EXPECT_NEAR(softmax_total(logits, maxima, 2), sum, 1e-5 * sum);
  }
}

}  // namespace
}  // namespace banyan::logit_scan_test
