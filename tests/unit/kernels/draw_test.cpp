// The draw slot of the fastest table; tests/differential/draw_test.cpp compares the others with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/random.h"
#include "engine/draws/draw_builder.h"
#include "engine/draws/token_counts.h"
#include "kernels/select.h"
#include "support/sanitized.h"

namespace banyan::draw_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct LogitRow {
  std::span<const float> logits;
  TokenId argmax = 0;
  float log_sum_exp = 0;
};

// A row as the logit_stats kernel would describe it.
struct Row {
  explicit Row(std::vector<float> values) : logits(std::move(values)) {
    double max = std::ranges::max(logits), sum = 0;
    for (float x : logits) sum += std::exp(static_cast<double>(x) - max);
    row = {.logits = logits,
           .argmax = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()),
           .log_sum_exp = static_cast<float>(max + std::log(sum))};
  }
  std::vector<float> logits;
  LogitRow row;
};

struct DrawContext {
  const SamplingParams& params;
  const TokenCounts* counts = nullptr;
  std::span<const uint32_t> mask;  // empty: all tokens may come
  int64_t position = 0;
};

// One row at a time.
class Sampler {
 public:
  TokenId draw(const LogitRow& row, const DrawContext& context) {
    DrawRow draw = draw_row(context.params, context.position);
    if (!context.mask.empty()) draw.mask = 0;
    std::span<const TokenCount> seen;
    if (context.counts != nullptr) seen = context.counts->seen();
    draw.counts.count = static_cast<int32_t>(seen.size());
    std::vector<TokenBias> biases;
    for (auto [token, bias] : context.params.logit_bias) biases.push_back({token, bias});
    draw.biases.count = static_cast<int32_t>(biases.size());
    return run(row, draw,
               {.masks = context.mask.data(), .counts = seen.data(), .biases = biases.data()})
        .token;
  }

  std::span<const TokenLogprob> top(const LogitRow& row, int count) {
    tops_.resize(static_cast<size_t>(count));
    DrawResult result = run(row, {.known = 0, .top_count = count}, {.tops = tops_.data()});
    return std::span(tops_).first(static_cast<size_t>(result.top_count));
  }

  static float logprob(const LogitRow& row, TokenId token) {
    return run(row, {.known = token}, {}).logprob;
  }

 private:
  static DrawResult run(const LogitRow& row, const DrawRow& draw, DrawArgs args) {
    DrawResult result;
    args.logits = row.logits.data();
    args.argmax = &row.argmax;
    args.log_sum_exp = &row.log_sum_exp;
    args.rows = 1;
    args.vocabulary = std::ssize(row.logits);
    args.draws = &draw;
    args.results = &result;
    (*select_kernels("auto"))->draw(args);
    return result;
  }

  std::vector<TokenLogprob> tops_;
};

Row random_row(size_t size, uint64_t seed, float scale) {
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i) {
    logits[i] = scale * static_cast<float>(2 * uniform(seed, i, 0) - 1);
  }
  return Row(std::move(logits));
}

TokenId draw(const Row& row, const SamplingParams& params, int64_t position = 0,
             const TokenCounts* counts = nullptr, std::span<const uint32_t> mask = {}) {
  Sampler sampler;
  return sampler.draw(row.row,
                      {.params = params, .counts = counts, .mask = mask, .position = position});
}

// llama.cpp's typical_p, with all that are as near to the entropy as the last.
void keep_typical(std::vector<TokenId>& order, const std::function<double(TokenId)>& weight,
                  double typical_p) {
  double total = 0, entropy = 0, reached = 0, last = 0;
  for (TokenId t : order) total += weight(t);
  for (TokenId t : order) entropy -= weight(t) / total * std::log(weight(t) / total);
  auto distance = [&](TokenId t) { return std::abs(-std::log(weight(t) / total) - entropy); };
  std::vector<TokenId> nearest = order;
  std::ranges::stable_sort(nearest, {}, distance);
  for (TokenId t : nearest) {
    if (reached > typical_p * total && distance(t) > last) break;
    reached += weight(t);
    last = distance(t);
  }
  std::erase_if(order, [&](TokenId t) { return distance(t) > last; });
}

// llama.cpp's XTC where it applies.
void exclude_top(std::vector<TokenId>& order, const std::function<double(TokenId)>& weight,
                 double threshold) {
  double total = 0;
  for (TokenId t : order) total += weight(t);
  size_t likely = 0;
  while (likely < order.size() && weight(order[likely]) / total >= threshold) ++likely;
  if (likely > 1) order.erase(order.begin(), order.begin() + static_cast<int>(likely) - 1);
}

// The probabilities that the filters leave, worked out the long way.
std::map<TokenId, double> expected_distribution(const std::vector<float>& logits,
                                                const SamplingParams& params) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  if (params.top_k > 0 && params.top_k < static_cast<int>(order.size())) order.resize(params.top_k);
  double best = logits[order[0]];
  auto weight = [&](TokenId t) {
    return std::exp((static_cast<double>(logits[t]) - best) / params.temperature);
  };
  if (params.typical_p < 1) keep_typical(order, weight, params.typical_p);
  double total = 0;
  for (TokenId t : order) total += weight(t);
  double reached = 0;
  size_t kept = 0;
  while (kept < order.size() && (params.top_p == 1 || reached < params.top_p * total)) {
    reached += weight(order[kept++]);
  }
  order.resize(kept);
  double least = params.min_p * weight(order[0]);
  std::erase_if(order, [&](TokenId t) { return weight(t) < least; });
  if (params.xtc_probability == 1) exclude_top(order, weight, params.xtc_threshold);
  std::map<TokenId, double> distribution;
  double sum = 0;
  for (TokenId t : order) {
    distribution[t] = weight(t);
    sum += weight(t);
  }
  for (auto& [token, p] : distribution) p /= sum;
  return distribution;
}

TEST(SamplerGreedy, TakesTheLowestIdAmongEquals) {
  EXPECT_EQ(draw(Row({1, 3, 2, 3, 3}), {.temperature = 0}), 1);
  EXPECT_EQ(draw(Row({1, 3, 2, 3, 3}), {.temperature = 0, .logit_bias = {{2, 1}}}), 1);
  EXPECT_EQ(draw(Row({1, 3, 2, 3, 3}), {.temperature = 0, .logit_bias = {{2, 1.5f}}}), 2);
  uint32_t mask = 0b11101;
  EXPECT_EQ(draw(Row({1, 3, 2, 3, 3}), {.temperature = 0}, 0, nullptr, {&mask, 1}), 3);
}

TEST(SamplerFilters, KeepTheLowestIdsAmongEquals) {
  Row row({0, 5, 5, 5, 0});
  std::set<TokenId> seen;
  for (int64_t position = 0; position < 200; ++position) {
    seen.insert(draw(row, {.top_k = 2}, position));
  }
  EXPECT_EQ(seen, (std::set<TokenId>{1, 2}));
}

TEST(SamplerFilters, KeepExactlyTheRightTokens) {
  constexpr int kCases = 150, kDraws = 4000;
  for (int i = 0; i < kCases; ++i) {
    auto random = [&](int what) { return uniform(9, static_cast<uint64_t>(i), what); };
    Row row = random_row(12, static_cast<uint64_t>(i), 2);
    SamplingParams params{.temperature = static_cast<float>(0.8 + 2 * random(0)),
                          .top_p = random(1) < 0.5 ? 1 : static_cast<float>(0.1 + 0.9 * random(2)),
                          .top_k = random(3) < 0.5 ? 0 : static_cast<int>(1 + 14 * random(4)),
                          .min_p = random(5) < 0.5 ? 0 : static_cast<float>(random(6)),
                          .typical_p = random(7) < 0.6 ? 1 : static_cast<float>(0.1 + random(8)),
                          .xtc_probability = random(9) < 0.6 ? 0.f : 1.f,
                          .xtc_threshold = static_cast<float>(0.4 * random(10)),
                          .seed = static_cast<uint64_t>(i)};
    std::map<TokenId, double> expected = expected_distribution(row.logits, params);
    std::map<TokenId, int> seen;
    for (int64_t position = 0; position < kDraws; ++position) ++seen[draw(row, params, position)];
    for (auto [token, count] : seen) EXPECT_TRUE(expected.contains(token)) << i << ' ' << token;
    for (auto [token, p] : expected) {
      // Six standard deviations, and one draw for what is rare.
      EXPECT_NEAR(seen[token], p * kDraws, 6 * std::sqrt(p * kDraws) + 1) << i << ' ' << token;
    }
  }
}

// More tokens than the first prefix that is sorted.
TEST(SamplerFilters, TopPReachesFarIntoAFlatDistribution) {
  Row row = random_row(2000, 1, 0.01f);
  SamplingParams params{.top_p = 0.5};
  std::map<TokenId, double> expected = expected_distribution(row.logits, params);
  EXPECT_NEAR(static_cast<double>(expected.size()), 1000, 10);
  std::set<TokenId> seen;
  for (int64_t position = 0; position < 6000; ++position) {
    TokenId token = draw(row, params, position);
    ASSERT_TRUE(expected.contains(token)) << token;
    seen.insert(token);
  }
  EXPECT_GT(seen.size(), expected.size() - 15);
}

double chi_square(const std::map<TokenId, double>& expected, const std::map<TokenId, int>& seen,
                  int draws) {
  double sum = 0;
  for (auto [token, p] : expected) {
    double wanted = p * draws, got = seen.contains(token) ? seen.at(token) : 0;
    sum += (got - wanted) * (got - wanted) / wanted;
  }
  return sum;
}

// Draws over seeds, over positions and over sample indices all follow the softmax, a million in
// all.
TEST(SamplerDraws, FollowTheDistribution) {
  constexpr int kDraws = 333334;
  Row row = random_row(12, 3, 1.5f);
  Sampler sampler;
  std::map<TokenId, double> expected = expected_distribution(row.logits, {.temperature = 0.7f});
  for (int axis = 0; axis < 3; ++axis) {
    std::map<TokenId, int> seen;
    for (int i = 0; i < kDraws; ++i) {
      SamplingParams params{.temperature = 0.7f,
                            .seed = axis == 0 ? static_cast<uint64_t>(i) : 5,
                            .sample_index = axis == 1 ? static_cast<uint32_t>(i) : 0};
      ++seen[sampler.draw(row.row, {.params = params, .mask = {}, .position = axis == 2 ? i : 17})];
    }
    // 11 degrees of freedom: passed by chance with p = 1e-5.
    EXPECT_LT(chi_square(expected, seen, kDraws), 44) << axis;
  }
}

// The filters leave hundreds of the tokens of many blocks; these are counted by their last digits.
TEST(SamplerDraws, FollowTheDistributionOverManyBlocks) {
  constexpr int kBins = 50;
  Row row = random_row(6000, 12, 6);
  Sampler sampler;
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_p = 0.9f}, SamplingParams{.min_p = 0.02f},
        SamplingParams{.temperature = 1.5f, .top_p = 0.95f, .top_k = 900, .min_p = 0.01f},
        SamplingParams{.typical_p = 0.6f}, SamplingParams{.top_p = 0.9f, .typical_p = 0.9f},
        SamplingParams{.xtc_probability = 1, .xtc_threshold = 0.0005f},
        SamplingParams{.min_p = 0.02f, .xtc_probability = 1, .xtc_threshold = 0.001f},
        SamplingParams{.top_k = 900, .typical_p = 0.9f, .xtc_probability = 1}}) {
    std::map<TokenId, double> bins;
    for (auto [token, p] : expected_distribution(row.logits, params)) bins[token % kBins] += p;
    // Lists of thousands of tokens take their time.
    int draws = params.typical_p < 1 || params.xtc_probability > 0 ? 1500 : 10000;
    if (test::kSanitized) draws /= 3;
    std::map<TokenId, int> seen;
    for (int i = 0; i < draws; ++i) {
      ++seen[sampler.draw(row.row, {.params = params, .mask = {}, .position = i}) % kBins];
    }
    // 49 degrees of freedom: passed by chance with p = 1e-5.
    EXPECT_LT(chi_square(bins, seen, draws), 104);
  }
}

// What a mask forbids takes no part in the race: the others' noise is the same without it.
TEST(SamplerDraws, DoNotDependOnWhatTheMaskForbidsIfTheWinnerIsAllowed) {
  constexpr size_t kVocabulary = 500;
  Sampler sampler;
  int allowed = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    Row row = random_row(kVocabulary, 100 + i, 4);
    SamplingParams params{.temperature = 0.8f, .seed = i};
    TokenId free = sampler.draw(row.row, {.params = params, .mask = {}, .position = 9});
    std::vector<uint32_t> mask(kVocabulary / 32 + 1);
    for (size_t w = 0; w < mask.size(); ++w) mask[w] = philox(i, w, 3)[0];
    mask.back() &= (1u << kVocabulary % 32) - 1;
    if (((mask[static_cast<size_t>(free) / 32] >> (free % 32)) & 1) == 0) continue;
    ++allowed;
    EXPECT_EQ(sampler.draw(row.row, {.params = params, .mask = mask, .position = 9}), free);
  }
  EXPECT_GT(allowed, 1000);
}

TEST(SamplerDraws, DependOnSeedSampleIndexAndPositionAlone) {
  Row row = random_row(50, 4, 1);
  Row other = random_row(50, 5, 1);
  Sampler sampler;
  auto at = [&](uint64_t seed, uint32_t sample, int64_t position) {
    SamplingParams params{.seed = seed, .sample_index = sample};
    return sampler.draw(row.row, {.params = params, .mask = {}, .position = position});
  };
  std::vector<TokenId> forward, backward;
  for (int64_t p = 0; p < 100; ++p) forward.push_back(at(7, 1, p));
  for (int64_t p = 99; p >= 0; --p) {
    SamplingParams params{.top_p = 0.5f, .seed = 99};
    sampler.draw(other.row, {.params = params, .mask = {}, .position = p});  // must not matter
    backward.push_back(at(7, 1, p));
  }
  std::ranges::reverse(backward);
  EXPECT_EQ(forward, backward);
  std::vector<TokenId> seed, sample;
  for (int64_t p = 0; p < 100; ++p) {
    seed.push_back(at(8, 1, p));
    sample.push_back(at(7, 2, p));
  }
  EXPECT_NE(forward, seed);
  EXPECT_NE(forward, sample);
}

TEST(SamplerDraws, TakeExtremesOfTemperature) {
  Row row({-3, 9, 8.9f, 2});
  for (int64_t p = 0; p < 200; ++p) {
    EXPECT_EQ(draw(row, {.temperature = 1e-6f}, p), 1);
    EXPECT_EQ(draw(row, {.temperature = std::numeric_limits<float>::denorm_min()}, p), 1);
  }
  std::set<TokenId> seen;
  for (int64_t p = 0; p < 200; ++p) seen.insert(draw(row, {.temperature = 100}, p));
  EXPECT_EQ(seen.size(), 4u);
}

// At how many positions XTC applies, and that it is a chance of its own: of the two likely tokens
// the first is left where it does not.
TEST(SamplerFilters, XtcAppliesAtItsShareOfThePositions) {
  constexpr int kDraws = 20000;
  Row row({3, 2.9f, -20, -20});
  SamplingParams params{.xtc_probability = 0.3f, .xtc_threshold = 0.2f, .seed = 3};
  SamplingParams always = params, never = params;
  always.xtc_probability = 1;
  never.xtc_probability = 0;
  double first = std::exp(3) / (std::exp(3) + std::exp(2.9));
  int firsts = 0;
  for (int64_t position = 0; position < kDraws; ++position) {
    TokenId token = draw(row, params, position), without = draw(row, never, position);
    EXPECT_EQ(draw(row, always, position), 1);
    EXPECT_TRUE(token == 1 || token == without);
    firsts += token == 0 ? 1 : 0;
  }
  double expected = 0.7 * first * kDraws;
  EXPECT_NEAR(firsts, expected, 6 * std::sqrt(expected));
  std::set<TokenId> greedy;
  params.temperature = 0;
  for (int64_t position = 0; position < 100; ++position) greedy.insert(draw(row, params, position));
  EXPECT_EQ(greedy, (std::set<TokenId>{0}));
}

TEST(SamplerFilters, TypicalAndXtcTakeExtremes) {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  Row flat(std::vector<float>(300, 1)), steep({-3, 90, 89, 2}), row = random_row(1000, 5, 3);
  for (int64_t p = 0; p < 100; ++p) {
    EXPECT_LT(draw(flat, {.typical_p = 0.1f}, p), 300);
    EXPECT_EQ(draw(steep, {.temperature = kLeast, .typical_p = 0.5f}, p), 1);
    EXPECT_EQ(draw(steep, {.temperature = kLeast, .xtc_probability = 1, .xtc_threshold = 0}, p), 1);
    // Only the least likely of all is left.
    EXPECT_EQ(draw(row, {.xtc_probability = 1, .xtc_threshold = 0}, p),
              std::ranges::min_element(row.logits) - row.logits.begin());
    std::vector<uint32_t> mask(32);
    mask[3] = 1u << 5;
    EXPECT_EQ(draw(row, {.typical_p = kLeast, .xtc_probability = 1, .xtc_threshold = 0}, p, nullptr,
                   mask),
              101);
  }
}

TEST(SamplerDraws, NeverTakeWhatTheMaskForbids) {
  Row row = random_row(70, 6, 3);
  std::vector<uint32_t> mask = {0, 1u << 5 | 1u << 31, 1u << 5};
  std::set<TokenId> seen;
  for (int64_t p = 0; p < 3000; ++p) seen.insert(draw(row, {}, p, nullptr, mask));
  EXPECT_EQ(seen, (std::set<TokenId>{37, 63, 69}));
}

// Many blocks, most of which the mask empties: every token that may come does, as often as it
// should.
TEST(SamplerDraws, FollowTheDistributionOfALargeVocabulary) {
  constexpr int kDraws = 5000;
  Row row = random_row(30000, 11, 1);
  std::vector<uint32_t> mask(30016 / 32, 0);
  std::vector<float> left(row.logits.size(), -kInfinity);
  for (size_t t : {3u, 64u, 9000u, 9001u, 17777u, 29999u}) {
    mask[t / 32] |= 1u << (t % 32);
    left[t] = row.logits[t];
  }
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.top_p = 0.999f}, SamplingParams{.top_k = 50}}) {
    std::map<TokenId, double> expected;
    double total = 0;
    for (float x : left) total += std::exp(static_cast<double>(x));
    for (size_t t = 0; t < left.size(); ++t) {
      if (left[t] > -kInfinity) expected[static_cast<TokenId>(t)] = std::exp(left[t]) / total;
    }
    Sampler sampler;
    std::map<TokenId, int> seen;
    for (int i = 0; i < kDraws; ++i) {
      ++seen[sampler.draw(row.row, {.params = params, .mask = mask, .position = i})];
    }
    EXPECT_EQ(seen.size(), expected.size());
    for (auto [token, p] : expected) {
      EXPECT_NEAR(seen[token], p * kDraws, 6 * std::sqrt(p * kDraws)) << token;
    }
  }
}

TEST(SamplerPenalties, AreTheFormulasOfTheirNames) {
  Row row({2, -1, 0.5f, -2, 3});
  TokenCounts counts;
  counts.start(std::vector<TokenId>{0, 3, 2, 3}, 10, 5);
  for (TokenId token : {1, 2, 1}) counts.add(token);
  SamplingParams params{.temperature = 0,
                        .frequency_penalty = 0.5f,
                        .presence_penalty = 0.25f,
                        .repetition_penalty = 2,
                        .logit_bias = {}};
  // repetition: {1, -2, 0.25, -4, 3}; less 0.5 a time and 0.25 once: {1, -3.25, -0.5, -4, 3}
  std::vector<float> expected = {1, -3.25f, -0.5f, -4, 3};
  // The value of each token is found by how much bias on it makes it overtake 3.
  for (TokenId t = 0; t < 4; ++t) {
    float gap = 3 - expected[static_cast<size_t>(t)];
    params.logit_bias = {{t, gap - 0.01f}};
    EXPECT_EQ(draw(row, params, 0, &counts), 4) << t;
    params.logit_bias = {{t, gap + 0.01f}};
    EXPECT_EQ(draw(row, params, 0, &counts), t);
  }
}

// Damaged weights can make logits that are huge or -inf without being NaN; penalties push them over
// the edge. Some token must come out all the same.
TEST(SamplerDraws, SurviveLogitsWithoutEnd) {
  TokenCounts counts;
  counts.start(std::vector<TokenId>{0, 1, 2}, 10, 3);
  for (TokenId token : {0, 1, 2}) counts.add(token);
  SamplingParams harsh{.repetition_penalty = 100};
  EXPECT_GE(draw(Row({-1e38f, -2e38f, -3e38f}), harsh, 0, &counts), 0);
  SamplingParams soft{.repetition_penalty = 0.01f};
  EXPECT_GE(draw(Row({1e38f, 2e38f, 3e38f}), soft, 0, &counts), 0);
  Row row({0, -kInfinity, 1});
  uint32_t mask = 0b010;
  EXPECT_EQ(draw(row, {}, 0, nullptr, {&mask, 1}), 1);
  EXPECT_EQ(draw(row, {.temperature = 0}, 0, nullptr, {&mask, 1}), 1);
}

TEST(SamplerDraws, AreNoTokenWhereTheMaskAllowsNoneOrTheLogitsAreNoNumbers) {
  std::vector<uint32_t> mask(1);
  for (float temperature : {0.f, 1.f}) {
    EXPECT_EQ(draw(Row({1, 2, 3}), {.temperature = temperature}, 0, nullptr, mask), -1);
    EXPECT_EQ(draw(Row({1, NAN, 3}), {.temperature = temperature}), -1);
  }
}

TEST(TokenCounts, TakeBackWhatWasAddedLast) {
  TokenCounts counts;
  counts.start(std::vector<TokenId>{4, 4, 1}, 8, 6);
  auto list = [&] {
    std::vector<std::pair<TokenId, int32_t>> all;
    for (auto [token, times] : counts.seen()) all.emplace_back(token, times);
    return all;
  };
  using List = std::vector<std::pair<TokenId, int32_t>>;
  counts.add(2);
  counts.add(4);
  EXPECT_EQ(list(), (List{{4, 1}, {1, 0}, {2, 1}}));
  for (TokenId token : {2, 5, 1, 5}) counts.add(token);
  EXPECT_EQ(list(), (List{{4, 1}, {1, 1}, {2, 2}, {5, 2}}));
  for (TokenId token : {5, 1, 5, 2}) counts.remove(token);
  EXPECT_EQ(list(), (List{{4, 1}, {1, 0}, {2, 1}}));
}

// Compared with a fresh count, also after drafts are rolled back.
TEST(TokenCounts, OfAWindowAreThoseOfItsTokens) {
  std::mt19937 random(7);
  for (int64_t window : {1, 2, 5, 40}) {
    std::vector<TokenId> tokens = {3, 3, 1, 0, 4};
    const size_t prompt = tokens.size();
    TokenCounts counts;
    counts.start(tokens, 64, 6, window);
    for (int i = 0; i < 400; ++i) {
      bool full = tokens.size() == 60, back = tokens.size() > prompt && random() % 3 == 0;
      if (full || back) {
        counts.remove(tokens.back());
        tokens.pop_back();
      } else {
        tokens.push_back(static_cast<TokenId>(random() % 6));
        counts.add(tokens.back());
      }
      std::map<TokenId, int32_t> expected, seen;
      size_t first = tokens.size() - std::min(tokens.size(), static_cast<size_t>(window));
      for (size_t k = first; k < tokens.size(); ++k) expected[tokens[k]] += k >= prompt ? 1 : 0;
      for (auto [token, times] : counts.seen()) {
        EXPECT_TRUE(seen.emplace(token, times).second) << token << " twice";
      }
      ASSERT_EQ(seen, expected) << "window " << window << ", change " << i;
    }
  }
}

TEST(SamplerTop, IsTheSortedHeadOfTheLogSoftmax) {
  Row row = random_row(300, 8, 4);
  row.logits[17] = row.logits[200];
  Sampler sampler;
  std::vector<TokenId> order(300);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](TokenId a, TokenId b) { return row.logits[a] > row.logits[b]; });
  for (int count : {0, 1, 5, 128, 300, 400}) {
    std::span<const TokenLogprob> top = sampler.top(row.row, count);
    ASSERT_EQ(top.size(), static_cast<size_t>(std::min(count, 300)));
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].token, order[i]);
      EXPECT_EQ(top[i].logprob, Sampler::logprob(row.row, order[i]));
    }
  }
}

}  // namespace
}  // namespace banyan::draw_test
