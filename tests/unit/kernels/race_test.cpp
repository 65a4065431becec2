// The exponential race: its winner against a direct computation of all scores, and fixed winners
// that every build must reproduce.
#include "kernels/race.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "banyan/request.h"
#include "base/random.h"

namespace banyan::race_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t word_of(const DrawNoise& noise, TokenId token) {
  auto t = static_cast<uint64_t>(token);
  return philox(noise.seed, static_cast<uint64_t>(noise.position),
                t / 4 << 32 | noise.sample_index)[t % 4];
}

bool noise_words(const NoiseArgs& args) {
  bool some = false;
  for (uint32_t i = 0; i < 4 * kNoiseQuads; ++i) {
    uint32_t word = word_of(args.noise, static_cast<TokenId>(4 * args.first_quad + i));
    args.words[i % 4 * kNoiseQuads + i / 4] = word;
    some |= word >= args.least;
  }
  return some;
}

TokenId run(std::span<const float> logits, const RaceField& field, const DrawNoise& noise) {
  std::vector<float> maxima, scratch;
  find_block_maxima(logits, maxima);
  return run_race(logits, maxima, field, noise, noise_words, scratch);
}

bool takes_part(float logit, TokenId token, const RaceField& field) {
  auto [first, last] = std::pair(field.first, field.last);
  bool after_first = logit < first.logit || (logit == first.logit && token >= first.token);
  return after_first && (logit > last.logit || (logit == last.logit && token <= last.token));
}

// Every score worked out; nothing is skipped.
TokenId naive_winner(std::span<const float> logits, const RaceField& field,
                     const DrawNoise& noise) {
  float best_logit = std::ranges::max(logits);
  double best = 0;
  TokenId winner = -1;
  for (size_t t = 0; t < logits.size(); ++t) {
    auto token = static_cast<TokenId>(t);
    bool in = takes_part(logits[t], token, field);
    float weight = softmax_weight(logits[t], best_logit, field.temperature);
    if (!in || weight < field.min_p) continue;
    double score = static_cast<double>(weight) / race_time(word_of(noise, token));
    if (score > best) {
      best = score;
      winner = token;
    }
  }
  return winner;
}

// Rows of every shape: flat and steep, with impossible tokens and equal ones.
std::vector<float> row_of(uint64_t i) {
  constexpr size_t kSizes[] = {1, 3, 63, 64, 65, 200, 1000, 5000};
  std::vector<float> logits(kSizes[i % std::size(kSizes)]);
  auto scale = std::ldexp(1.0f, static_cast<int>(9 * uniform(1, i, 0)) - 4);
  double impossible = uniform(2, i, 0) < 0.5 ? 0 : uniform(3, i, 0);
  bool equal = uniform(4, i, 0) < 0.2;
  for (size_t t = 0; t < logits.size(); ++t) {
    auto x = static_cast<float>(2 * uniform(5, i, t) - 1);
    logits[t] = scale * (equal ? std::round(4 * x) : x);
    if (uniform(6, i, t) < impossible) logits[t] = -kInfinity;
  }
  logits[philox(7, i, 0)[0] % logits.size()] = 0;  // some token is possible
  return logits;
}

RaceField field_of(uint64_t i, std::span<const float> logits) {
  RaceField field = {.temperature = static_cast<float>(0.1 + 2 * uniform(8, i, 0))};
  if (uniform(9, i, 0) < 0.3) field.min_p = static_cast<float>(uniform(10, i, 0));
  if (uniform(11, i, 0) < 0.3) {
    std::vector<float> maxima, scratch;
    std::vector<TopLogit> top;
    find_block_maxima(logits, maxima);
    find_top_logits(logits, maxima, 1 + philox(12, i, 0)[0] % 100, scratch, top);
    field.last = top.back();
  }
  return field;
}

// Leaves out some of the likeliest, but not all that may win.
void exclude_top(uint64_t i, std::span<const float> logits, RaceField& field) {
  std::vector<float> maxima, scratch;
  std::vector<TopLogit> top;
  find_block_maxima(logits, maxima);
  find_top_logits(logits, maxima, 50, scratch, top);
  TopLogit first = top[philox(15, i, 0)[0] % top.size()];
  bool takes_part = first.logit > field.last.logit ||
                    (first.logit == field.last.logit && first.token <= field.last.token);
  float weight = softmax_weight(first.logit, top[0].logit, field.temperature);
  if (takes_part && weight > 0 && weight >= field.min_p) field.first = first;
}

TEST(RaceTime, IsMinusTheLogarithm) {
  auto expect = [](uint32_t word) {
    // log1p where the logarithm is near 0.
    double rest = (0xffffffffp0 - word + 0.5) * 0x1p-32;
    double wanted = rest < 0.5 ? -std::log1p(-rest) : -std::log((word + 0.5) * 0x1p-32);
    EXPECT_NEAR(race_time(word), wanted, 1e-15 * wanted) << word;
    EXPECT_GE(race_time(word) * (1 + 1e-12), rest) << word;  // what skipping relies on
  };
  for (uint32_t word : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xb504f333u, 0xb504f334u, ~1u, ~0u}) {
    expect(word);
  }
  for (uint64_t i = 0; i < 20000; ++i) {
    std::array<uint32_t, 4> words = philox(1, i, 0);
    expect(words[0]);
    expect(words[1] >> words[2] % 32);
    expect(~(words[1] >> words[2] % 32));
  }
}

TEST(Race, HasTheWinnerOfAllScores) {
  for (uint64_t i = 0; i < 2000; ++i) {
    std::vector<float> logits = row_of(i);
    RaceField field = field_of(i, logits);
    if (uniform(14, i, 0) < 0.5) exclude_top(i, logits, field);
    DrawNoise noise = {.seed = philox(13, i, 0)[0],
                       .position = static_cast<int64_t>(i) << (i % 40),
                       .sample_index = static_cast<uint32_t>(i % 3)};
    TokenId winner = run(logits, field, noise);
    ASSERT_EQ(winner, naive_winner(logits, field, noise)) << i;
    std::vector<TopLogit> kept;
    float best = std::ranges::max(logits);
    for (size_t t = 0; t < logits.size(); ++t) {
      bool in = takes_part(logits[t], static_cast<TokenId>(t), field);
      float weight = softmax_weight(logits[t], best, field.temperature);
      if (in) kept.push_back({logits[t], static_cast<TokenId>(t), weight});
    }
    ASSERT_EQ(run_race(kept, field.min_p, noise), winner) << i;
  }
}

// A text of a seed is the same wherever Banyan was compiled, until kDrawRevision changes.
TEST(Race, HasTheSameWinnersInEveryBuild) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    std::vector<float> logits = row_of(i);
    for (int64_t position = 0; position < 4; ++position) {
      TokenId winner = run(logits, field_of(i, logits), {.seed = i, .position = position});
      sum = 31 * sum + static_cast<uint64_t>(winner);
    }
  }
  EXPECT_EQ(kDrawRevision, 2);
  EXPECT_EQ(sum, 5156679268444455648u);
}

// Two models that share the noise agree with the probability that Daliri, Musco and Suresh give
// (arXiv 2408.07978).
TEST(Race, AgreesWithThatOfASimilarDistribution) {
  constexpr int kDraws = 20000;
  std::vector<float> p = {0, 1, 0.5f, -1, 2, 0.2f}, q = {0.3f, 0.8f, 0, -1.5f, 2.2f, 0.2f};
  auto share = [](const std::vector<float>& logits, size_t i) {
    double sum = 0;
    for (float x : logits) sum += std::exp(x);
    return std::exp(logits[i]) / sum;
  };
  double expected = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < p.size(); ++j) {
      sum += std::max(share(p, j) / share(p, i), share(q, j) / share(q, i));
    }
    expected += 1 / sum;
  }
  int same = 0;
  for (int64_t position = 0; position < kDraws; ++position) {
    same += run(p, {}, {.position = position}) == run(q, {}, {.position = position});
  }
  double deviation = std::sqrt(expected * (1 - expected) * kDraws);
  EXPECT_GT(expected, 0.8);
  EXPECT_NEAR(same, expected * kDraws, 5 * deviation);
}

}  // namespace
}  // namespace banyan::race_test
