// Every table draws the same tokens, bit for bit.
#include <gtest/gtest.h>

#include "base/random.h"
#include "differential/kernels.h"

namespace banyan::draw_test {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kRows = 24, kVocabulary = 1003, kWords = (kVocabulary + 31) / 32;

// Rows of every kind of sampling, with masks, counts, biases and what is to be reported.
struct Case {
  explicit Case(uint64_t seed) {
    Random random(seed);
    float scale = 1 + static_cast<float>(seed % 10);
    logits = random.normals(kRows * kVocabulary, scale);
    for (int64_t r = 0; r < kRows; ++r) {
      const float* row = logits.data() + r * kVocabulary;
      argmax.push_back(static_cast<int32_t>(std::max_element(row, row + kVocabulary) - row));
      log_sum_exp.push_back(row[argmax.back()] + 0.5f);
      draws.push_back(random_draw(random, r));
    }
    draws[5].known = 77;
    log_sum_exp[6] = NAN;
    for (int64_t w = 0; w < 3 * kWords; ++w) {
      masks.push_back(static_cast<uint32_t>(random.below(int64_t{1} << 32)));
      if (w >= 2 * kWords) masks.back() = 0;  // the third allows nothing
      if (w % kWords == kWords - 1) masks.back() &= (1u << kVocabulary % 32) - 1;
    }
    for (TokenId t = 0; t < 100; ++t) counts.push_back({7 * t, t % 3});
    for (TokenId t = 0; t < 20; ++t) biases.push_back({11 * t % 50, random.normal()});
    for (TokenId t = 0; t < 9; ++t) chosen.push_back(100 * t);
  }

  DrawRow random_draw(Random& random, int64_t row) {
    DrawRow draw = {.noise = {.seed = static_cast<uint64_t>(random.below(int64_t{1} << 62)),
                              .position = random.below(int64_t{1} << 40),
                              .sample_index = static_cast<uint32_t>(random.below(9))},
                    .temperature = row % 5 == 0 ? 0 : 0.2f * static_cast<float>(row % 5),
                    .mask = static_cast<int32_t>(random.below(9)) - 6,
                    .tops_begin = static_cast<int32_t>(tops)};
    if (row % 3 == 1) draw.top_p = 0.9f;
    if (row % 4 == 1) draw.top_k = 30;
    if (row % 7 == 1) draw.min_p = 0.05f;
    if (row % 11 < 3) draw.typical_p = 0.4f;
    if (row % 9 < 3) draw.xtc_probability = 0.7f;
    if (row % 2 == 1) {
      draw.frequency_penalty = 0.5f;
      draw.repetition_penalty = 1.2f;
      draw.counts = {3, 90};
    }
    if (row % 6 == 1) draw.biases = {2, 15};
    if (row % 8 < 2) draw.top_count = 12;
    if (row % 8 == 1) draw.chosen = {1, 8};
    tops += draw.top_count + draw.chosen.count;
    return draw;
  }

  struct Outcome {
    std::vector<DrawResult> results;
    std::vector<TokenLogprob> tops;
  };

  Outcome run(const KernelTable& table, ThreadPool* threads) const {
    Outcome outcome = {.results = std::vector<DrawResult>(kRows),
                       .tops = std::vector<TokenLogprob>(static_cast<size_t>(tops))};
    table.draw({.launch = {.threads = threads},
                .logits = logits.data(),
                .argmax = argmax.data(),
                .log_sum_exp = log_sum_exp.data(),
                .rows = kRows,
                .vocabulary = kVocabulary,
                .draws = draws.data(),
                .masks = masks.data(),
                .counts = counts.data(),
                .biases = biases.data(),
                .chosen = chosen.data(),
                .results = outcome.results.data(),
                .tops = outcome.tops.data()});
    return outcome;
  }

  std::vector<float> logits, log_sum_exp;
  std::vector<int32_t> argmax;
  std::vector<DrawRow> draws;
  std::vector<uint32_t> masks;
  std::vector<TokenCount> counts;
  std::vector<TokenBias> biases;
  std::vector<TokenId> chosen;
  int64_t tops = 0;
};

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A few, for tables that take long.
TEST(Draw, OfOneCaseIsTheSameBitsInEveryTable) {
  Case c(1);
  Case::Outcome expected = c.run(*tables().front(), nullptr);
  for (const KernelTable* table : tables()) {
    Case::Outcome outcome = c.run(*table, nullptr);
    EXPECT_TRUE(same_bytes(outcome.results, expected.results)) << table->name;
    EXPECT_TRUE(same_bytes(outcome.tops, expected.tops)) << table->name;
  }
}

TEST(Draw, IsTheSameBitsInEveryTable) {
  ThreadPool threads(2);
  int64_t without = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Case c(seed);
    Case::Outcome expected = c.run(*tables().front(), nullptr);
    for (const DrawResult& result : expected.results) without += result.token < 0;
    for (const KernelTable* table : tables()) {
      for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &threads}) {
        Case::Outcome outcome = c.run(*table, pool);
        EXPECT_TRUE(same_bytes(outcome.results, expected.results)) << table->name << ' ' << seed;
        EXPECT_TRUE(same_bytes(outcome.tops, expected.tops)) << table->name << ' ' << seed;
      }
    }
  }
  EXPECT_GT(without, 200);       // rows without a number, and rows whose mask is empty
  EXPECT_LT(without, 200 * 10);  // the others draw
}

TEST(ResolveTokens, PutsWhatWasDrawnInItsPlaces) {
  std::vector<DrawResult> drawn = {{.token = 40}, {.token = -1}, {.token = 7}};
  std::vector<TokenId> tokens = {5, -3, 0, -1, -2};
  for (const KernelTable* table : tables()) {
    std::vector<TokenId> out(5);
    table->resolve_tokens(
        {.tokens = tokens.data(), .drawn = drawn.data(), .out = out.data(), .rows = 5});
    EXPECT_EQ(out, (std::vector<TokenId>{5, 7, 0, 40, 0})) << table->name;
  }
}

// Three sequences after 2 of 2, 0 of 3 and none of no drafts.
class Followed {
 public:
  Followed() {
    args.spans = 3;
    args.before = before_.data();
    args.tokens = tokens_.data();
    args.drawn = drawn_.data();
    args.vocabulary = 100;
  }

  FollowDraftsArgs args;
  // Rows that begin two positions after the last token.
  std::vector<SpanArgs> after = {{0, 2, -1, 5}, {2, 1, -1, 6}, {3, 3, -1, 7}};
  std::vector<int32_t> last_rows = std::vector<int32_t>(3, -1);
  std::vector<int32_t> positions = std::vector<int32_t>(6, -1);
  std::vector<DraftRows> drafts = {{2, 9, 0}, {3, 9, 0}, {0, 9, 0}};
  std::vector<DrawRow> draws = std::vector<DrawRow>(6);
  std::vector<TokenId> next_tokens = std::vector<TokenId>(6, -7);

 private:
  std::vector<SpanArgs> before_ = {{0, 3, 10, 0}, {3, 4, 20, 2}, {7, 1, 30, 4}};
  std::vector<TokenId> tokens_ = {1, 40, 41, 2, 50, 51, 52, 3};
  std::vector<DrawResult> drawn_ = {{.token = 40}, {.token = 41}, {.token = 42}, {.token = 60},
                                    {.token = 51}, {.token = 52}, {.token = 61}, {.token = -1}};
};

TEST(FollowDrafts, ContinuesAfterTheAcceptedOnes) {
  std::vector<DrawResult> drafted = {{.token = 43}, {.token = 0},   {.token = 70},
                                     {.token = 0},  {.token = 100}, {.token = 99}};
  for (const KernelTable* table : tables()) {
    Followed f;
    f.args.offset = 2;
    f.args.after = f.after.data();
    f.args.last_rows = f.last_rows.data();
    f.args.positions = f.positions.data();
    f.args.drafts = f.drafts.data();
    f.args.draws = f.draws.data();
    f.args.ahead = 3;
    f.args.next_tokens = f.next_tokens.data();
    f.args.drafted = drafted.data();
    table->follow_drafts(f.args);
    EXPECT_EQ(f.last_rows, (std::vector<int32_t>{2, 3, 7})) << table->name;
    EXPECT_EQ(f.positions, (std::vector<int32_t>{15, 16, 23, 33, 34, 35})) << table->name;
    EXPECT_EQ(f.drafts, (std::vector<DraftRows>{{2, 2, 0}, {3, 0, 0}, {0, 0, 0}})) << table->name;
    EXPECT_EQ(f.next_tokens, (std::vector<TokenId>{42, 43, 60, 0, 70, 99})) << table->name;
    for (size_t r = 0; r < 6; ++r) {
      EXPECT_EQ(f.draws[r].noise.position, f.positions[r] + 3) << table->name;
    }
    EXPECT_EQ(f.after[1].first_position, 23) << table->name;
    EXPECT_EQ(f.after[1].page_begin, 6) << table->name;
  }
}

TEST(FollowDrafts, LeavesOutWhatIsNotGiven) {
  for (const KernelTable* table : tables()) {
    Followed f;
    f.args.offset = -1;
    f.args.after = f.after.data();
    f.args.draws = f.draws.data();
    f.args.ahead = 2;
    table->follow_drafts(f.args);
    EXPECT_EQ(f.after[0].first_position, 12) << table->name;
    EXPECT_EQ(f.draws[0].noise.position, 14) << table->name;
    EXPECT_EQ(f.positions[0], -1) << table->name;
  }
}

}  // namespace
}  // namespace banyan::draw_test
