// The arithmetic of drawing tokens, which is the same in every table: what a draw does to one
// logit, the weights of the softmax, and the times of the race (kernels/race.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/random.h"
#include "kernels/kernel_table.h"

namespace banyan {

inline constexpr size_t kLogitBlock = 64;  // logits per block
inline constexpr size_t kLogitLanes = 16;  // parallel sums or maxima, a multiple of vector widths
static_assert(kLogitBlock % kLogitLanes == 0);

inline constexpr float kLargestLogit = std::numeric_limits<float>::max();
inline constexpr float kImpossibleLogit = -std::numeric_limits<float>::infinity();

constexpr bool has_penalties(const DrawRow& row) {
  return row.counts.count > 0 &&
         (row.frequency_penalty != 0 || row.presence_penalty != 0 || row.repetition_penalty != 1);
}

// True if the logits are used unmodified.
constexpr bool draws_from_logits(const DrawRow& row) {
  return !has_penalties(row) && row.biases.count == 0 && row.mask < 0;
}

// True if drawing needs more than logit_stats found.
constexpr bool takes_passes(const DrawRow& row) {
  if (row.top_count > 0) return true;
  return row.known < 0 && !(row.temperature == 0 && draws_from_logits(row));
}

// The logit of a token that is `times` in the output, after penalties.
constexpr float penalised(float x, const DrawRow& row, int32_t times) {
  x = x > 0 ? x / row.repetition_penalty : x * row.repetition_penalty;
  if (times > 0) x -= row.frequency_penalty * static_cast<float>(times) + row.presence_penalty;
  return x;
}

// Whether XTC applies to the row. Its random word is shared with no token of the race, whose
// counters end at a quarter of the token ids.
constexpr bool excludes_top_choices(const DrawRow& row) {
  constexpr uint64_t kStream = 0xffffffff;
  if (row.xtc_probability <= 0) return false;
  uint32_t word = philox(row.noise.seed, static_cast<uint64_t>(row.noise.position),
                         kStream << 32 | row.noise.sample_index)[0];
  return (static_cast<double>(word) + 0.5) * 0x1p-32 < static_cast<double>(row.xtc_probability);
}

// exp_of_negative is 0 from here down.
inline constexpr float kLeastExponent = -88.0f;

// exp(x) for kLeastExponent <= x <= 0. x = n ln 2 + r with |r| <= ln 2 / 2, and e^r by its Taylor
// polynomial of degree 6. Below -87.7 the exponent bits are 0, and so is the result.
constexpr float exp_of_negative(float x) {
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

constexpr float exponent_of(float logit, float best, float temperature) {
  float x = (logit - best) / temperature;
  return x > kLeastExponent ? x : kLeastExponent;
}

// exp((logit - best) / temperature) for logits up to `best`, within 2 ulp; 0 below 1e-38.
constexpr float softmax_weight(float logit, float best, float temperature) {
  return exp_of_negative(exponent_of(logit, best, temperature));
}

// (logit - best) / temperature: the logarithm of softmax_weight.
constexpr double softmax_exponent(float logit, float best, float temperature) {
  return (static_cast<double>(logit) - static_cast<double>(best)) /
         static_cast<double>(temperature);
}

// Leaves the sum in lanes[0].
template <class T>
constexpr void add_lanes(T* lanes) {
  for (size_t half = kLogitLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[half + i];
  }
}

struct TypicalRange {
  bool found = false;
  int64_t begin = 0, end = 0;
};

// The range among the `size` most likely tokens, in descending order, that typical_p keeps, where
// `wanted` is typical_p of the total weight. Not found if it needs more tokens than there are,
// which cannot happen if these are `all`.
//
// The distance of a token's information from the entropy equals the distance of its
// softmax_exponent from their mean, above_mean(i). The kept tokens are therefore contiguous, around
// the mean.
template <class AboveMean, class Weight>
constexpr TypicalRange find_typical_range(int64_t size, bool all, double wanted,
                                          const AboveMean& above_mean, const Weight& weight) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  int64_t begin = 0;
  while (begin < size && above_mean(begin) >= 0) ++begin;
  int64_t end = begin;
  double reached = 0, furthest = 0;
  for (;;) {
    if (end == size && !all) return {};
    double up = begin > 0 ? above_mean(begin - 1) : kNone;
    double down = end < size ? -above_mean(end) : kNone;
    double next = up < down ? up : down;
    bool enough = reached > wanted && next > furthest;
    if (enough || (begin == 0 && end == size)) return {true, begin, end};
    furthest = next;
    bool upwards = begin > 0 && up <= down;
    reached += static_cast<double>(weight(upwards ? --begin : end++));
  }
}

// -ln((word + 0.5) / 2^32), within 2 ulp of f64.
//
// With 2 word + 1 = x 2^n and x in [1/sqrt(2), sqrt(2)), ln x = 2 atanh(s) for s = (x - 1) / (x +
// 1). In the series of atanh, |s| < 0.1716, and the first omitted term is below 2^-62 of the sum. x
// - 1 is exact, so times near 0, where most winners are, keep full precision.
constexpr double race_time(uint32_t word) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  uint64_t odd = 2 * uint64_t{word} + 1;
  // f64 holds it exactly. Not by std::bit_width: what nvcc makes of it for a GPU is 0.
  auto bits = std::bit_cast<uint64_t>(static_cast<double>(odd));
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double x = std::bit_cast<double>((bits & 0xfffffffffffffu) | uint64_t{1023} << 52);
  if (x >= 0x1.6a09e667f3bcdp+0) {
    x *= 0.5;
    ++exponent;
  }
  double s = (x - 1) / (x + 1), square = s * s;
  double sum = 0;
  for (int term = 21; term >= 3; term -= 2) sum = (sum + 1.0 / term) * square;
  return (33 - exponent) * kLn2 - 2 * (s + s * sum);
}

}  // namespace banyan
