#include "kernels/logit_scan.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>

namespace banyan {
namespace {

constexpr size_t kLanes = 16;  // parallel sums or maxima, a multiple of any vector width
static_assert(kLogitBlock % kLanes == 0);

bool before(const TopLogit& a, const TopLogit& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

// exp_of_negative is 0 from here down.
constexpr float kLeastExponent = -88.0f;

// exp(x) for kLeastExponent <= x <= 0. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its Taylor
// polynomial of degree 6. Below -87.7 the exponent bits are 0, and so is the result.
float exp_of_negative(float x) {
  constexpr float kToInteger = 0x1.8p+23f;  // a number this large has no fraction
  float n = (x * 0x1.715476p+0f + kToInteger) - kToInteger;
  float r = x - n * 0x1.62e400p-1f;  // few bits, so that the product is exact
  r -= n * 0x1.7f7d1cp-20f;
  float p = 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

float exponent_of(float logit, float best, float temperature) {
  float x = (logit - best) / temperature;
  return x > kLeastExponent ? x : kLeastExponent;
}

// Leaves the sum in lanes[0].
template <class T>
void add_lanes(T* lanes) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[half + i];
  }
}

float sum_of_block(const float* x) {
  float lanes[kLanes] = {};
  for (size_t first = 0; first < kLogitBlock; first += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i] += x[first + i];
  }
  add_lanes(lanes);
  return lanes[0];
}

}  // namespace

void find_block_maxima(std::span<const float> logits, std::vector<float>& maxima) {
  size_t whole = logits.size() / kLogitBlock;
  maxima.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  for (size_t block = 0; block < whole; ++block) {
    const float* x = logits.data() + block * kLogitBlock;
    float lanes[kLanes];
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = x[i];
    for (size_t first = kLanes; first < kLogitBlock; first += kLanes) {
      for (size_t i = 0; i < kLanes; ++i) {
        lanes[i] = lanes[i] > x[first + i] ? lanes[i] : x[first + i];
      }
    }
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        lanes[i] = lanes[i] > lanes[half + i] ? lanes[i] : lanes[half + i];
      }
    }
    maxima[block] = lanes[0];
  }
  if (whole < maxima.size()) maxima[whole] = std::ranges::max(logits.subspan(whole * kLogitBlock));
}

// The `count` largest maxima belong to distinct logits, so the `count` largest logits are all at
// least the smallest of them.
void find_top_logits(std::span<const float> logits, std::span<const float> maxima, size_t count,
                     std::vector<float>& scratch, std::vector<TopLogit>& top) {
  top.clear();
  count = std::min(count, logits.size());
  if (count == 0) return;
  float least = -std::numeric_limits<float>::max();
  if (count < maxima.size()) {
    scratch.assign(maxima.begin(), maxima.end());
    auto last = scratch.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::ranges::nth_element(scratch, last, std::greater<>());
    least = std::max(least, *last);
  }
  for (size_t block = 0; block < maxima.size(); ++block) {
    if (maxima[block] < least) continue;
    size_t end = std::min((block + 1) * kLogitBlock, logits.size());
    for (size_t t = block * kLogitBlock; t < end; ++t) {
      if (logits[t] >= least) top.push_back({logits[t], static_cast<TokenId>(t)});
    }
  }
  if (count < top.size()) {
    std::ranges::nth_element(top, top.begin() + static_cast<std::ptrdiff_t>(count), before);
    top.resize(count);
  }
  std::ranges::sort(top, before);
}

float softmax_weight(float logit, float best, float temperature) {
  return exp_of_negative(exponent_of(logit, best, temperature));
}

void find_softmax_weights(std::span<const float> logits, float best, float temperature,
                          std::span<float> weights) {
  // Two loops, since compilers vectorise each of them but not both merged.
  for (size_t i = 0; i < logits.size(); ++i) weights[i] = exponent_of(logits[i], best, temperature);
  for (size_t i = 0; i < logits.size(); ++i) weights[i] = exp_of_negative(weights[i]);
}

double softmax_total(std::span<const float> logits, std::span<const float> maxima,
                     float temperature) {
  float best = std::ranges::max(maxima);
  double lanes[kLanes] = {};
  for (size_t block = 0; block < maxima.size(); ++block) {
    // Skips most blocks under a mask.
    if (exponent_of(maxima[block], best, temperature) == kLeastExponent) continue;
    size_t begin = block * kLogitBlock, count = std::min(kLogitBlock, logits.size() - begin);
    float some[kLogitBlock] = {};
    find_softmax_weights(logits.subspan(begin, count), best, temperature, some);
    lanes[block % kLanes] += sum_of_block(some);
  }
  add_lanes(lanes);
  return lanes[0];
}

double softmax_exponent(float logit, float best, float temperature) {
  return (static_cast<double>(logit) - static_cast<double>(best)) /
         static_cast<double>(temperature);
}

SoftmaxMoments softmax_moments(std::span<const float> logits, std::span<const float> maxima,
                               float temperature) {
  float best = std::ranges::max(maxima);
  double totals[kLanes] = {}, sums[kLanes] = {};
  for (size_t block = 0; block < maxima.size(); ++block) {
    if (exponent_of(maxima[block], best, temperature) == kLeastExponent) continue;
    size_t begin = block * kLogitBlock, count = std::min(kLogitBlock, logits.size() - begin);
    float weights[kLogitBlock] = {};
    find_softmax_weights(logits.subspan(begin, count), best, temperature, weights);
    for (size_t i = 0; i < count; ++i) {
      auto weight = static_cast<double>(weights[i]);
      if (weight == 0) continue;
      totals[i % kLanes] += weight;
      sums[i % kLanes] += weight * softmax_exponent(logits[begin + i], best, temperature);
    }
  }
  add_lanes(totals);
  add_lanes(sums);
  return {.total = totals[0], .mean = sums[0] / totals[0]};
}

}  // namespace banyan
