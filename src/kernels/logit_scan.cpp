#include "kernels/logit_scan.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace banyan {
namespace {

bool before(const TopLogit& a, const TopLogit& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

float sum_of_block(const float* x) {
  float lanes[kLogitLanes] = {};
  for (size_t first = 0; first < kLogitBlock; first += kLogitLanes) {
    for (size_t i = 0; i < kLogitLanes; ++i) lanes[i] += x[first + i];
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
    float lanes[kLogitLanes];
    for (size_t i = 0; i < kLogitLanes; ++i) lanes[i] = x[i];
    for (size_t first = kLogitLanes; first < kLogitBlock; first += kLogitLanes) {
      for (size_t i = 0; i < kLogitLanes; ++i) {
        lanes[i] = lanes[i] > x[first + i] ? lanes[i] : x[first + i];
      }
    }
    for (size_t half = kLogitLanes / 2; half > 0; half /= 2) {
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
    auto last = scratch.begin() + count - 1;
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
    std::ranges::nth_element(top, top.begin() + count, before);
    top.resize(count);
  }
  std::ranges::sort(top, before);
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
  double lanes[kLogitLanes] = {};
  for (size_t block = 0; block < maxima.size(); ++block) {
    // Skips most blocks under a mask.
    if (exponent_of(maxima[block], best, temperature) == kLeastExponent) continue;
    size_t begin = block * kLogitBlock, count = std::min(kLogitBlock, logits.size() - begin);
    float some[kLogitBlock] = {};
    find_softmax_weights(logits.subspan(begin, count), best, temperature, some);
    lanes[block % kLogitLanes] += sum_of_block(some);
  }
  add_lanes(lanes);
  return lanes[0];
}

SoftmaxMoments softmax_moments(std::span<const float> logits, std::span<const float> maxima,
                               float temperature) {
  float best = std::ranges::max(maxima);
  double totals[kLogitLanes] = {}, sums[kLogitLanes] = {};
  for (size_t block = 0; block < maxima.size(); ++block) {
    if (exponent_of(maxima[block], best, temperature) == kLeastExponent) continue;
    size_t begin = block * kLogitBlock, count = std::min(kLogitBlock, logits.size() - begin);
    float weights[kLogitBlock] = {};
    find_softmax_weights(logits.subspan(begin, count), best, temperature, weights);
    for (size_t i = 0; i < count; ++i) {
      double weight = weights[i];
      if (weight == 0) continue;
      totals[i % kLogitLanes] += weight;
      sums[i % kLogitLanes] += weight * softmax_exponent(logits[begin + i], best, temperature);
    }
  }
  add_lanes(totals);
  add_lanes(sums);
  return {.total = totals[0], .mean = sums[0] / totals[0]};
}

}  // namespace banyan
