// Routing and combining of every table, against the rules written out plainly in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "differential/kernels.h"

namespace banyan::moe_test {
namespace {

using namespace test;  // NOLINT

constexpr float kInfinity = INFINITY;

struct Chosen {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Chosen route(const KernelTable& table, RouteArgs args, const std::vector<float>& logits,
             ThreadPool* threads = nullptr) {
  args.rows = std::ssize(logits) / args.experts;
  args.launch.threads = threads;
  args.logits = logits.data();
  args.logits_row_stride = args.experts;
  Chosen chosen{std::vector<int32_t>(args.rows * args.top_k, -7),
                std::vector<float>(args.rows * args.top_k, NAN)};
  args.ids = chosen.ids.data();
  args.weights = chosen.weights.data();
  table.route(args);
  return chosen;
}

std::vector<double> scores_of(const RouteArgs& a, const float* logits) {
  std::vector<double> scores(logits, logits + a.experts);
  double sum = 0;
  for (double& s : scores) {
    s = a.score == RouterScore::kSigmoid ? 1 / (1 + std::exp(-s)) : std::exp(s);
    sum += s;
  }
  if (a.score == RouterScore::kSoftmax) {
    for (double& s : scores) s /= sum;
  }
  return scores;
}

// The best `count` indices of `values`, best first.
std::vector<int64_t> best(const std::vector<double>& values, int64_t count) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t i, int64_t j) { return values[i] > values[j]; });
  order.resize(count);
  return order;
}

void expect_route(const RouteArgs& a, const float* logits, const Chosen& chosen, int64_t row) {
  std::vector<double> scores = scores_of(a, logits), choices = scores;
  for (int64_t e = 0; e < a.experts; ++e) choices[e] += a.bias ? a.bias[e] : 0;
  std::vector<double> groups;
  int64_t size = a.experts / a.groups;
  for (int64_t g = 0; g < a.groups; ++g) {
    std::vector<double> group(choices.begin() + g * size, choices.begin() + (g + 1) * size);
    std::ranges::sort(group, std::greater<>());
    groups.push_back(group[0]);
    if (a.group_score == GroupScore::kTopTwoSum && size > 1) groups.back() += group[1];
  }
  std::vector<double> masked(choices.size(), -kInfinity);
  for (int64_t g : best(groups, a.top_groups)) {
    for (int64_t e = g * size; e < (g + 1) * size; ++e) masked[e] = choices[e];
  }
  double sum = 0;
  std::vector<int64_t> expected = best(masked, a.top_k);
  for (int64_t e : expected) sum += scores[e];
  for (int64_t j = 0; j < a.top_k; ++j) {
    double weight = scores[expected[j]] * a.scale / (a.normalise ? sum : 1);
    ASSERT_EQ(chosen.ids[row * a.top_k + j], expected[j]) << "row " << row << ", choice " << j;
    ASSERT_NEAR(chosen.weights[row * a.top_k + j], weight, 1e-5 * weight) << "row " << row;
  }
}

TEST(Route, FollowsTheRules) {
  constexpr int64_t kRows = 60;
  Random random(3);
  ThreadPool threads(3);
  for (auto [experts, top_k, groups, top_groups] : {std::array<int64_t, 4>{8, 2, 1, 1},
                                                    {256, 8, 8, 4},
                                                    {7, 7, 1, 1},
                                                    {60, 6, 6, 3},
                                                    {771, 12, 1, 1},
                                                    {33, 1, 11, 2},
                                                    {16, 4, 16, 4}}) {
    std::vector<float> logits = random.normals(kRows * experts, 2);
    std::vector<float> bias = random.normals(experts, 0.2f);
    for (int variant = 0; variant < 8; ++variant) {
      RouteArgs args{.bias = variant & 4 ? bias.data() : nullptr,
                     .experts = experts,
                     .top_k = top_k,
                     .groups = groups,
                     .top_groups = top_groups,
                     .score = variant & 1 ? RouterScore::kSigmoid : RouterScore::kSoftmax,
                     .group_score = variant & 2 ? GroupScore::kTopTwoSum : GroupScore::kMax,
                     .normalise = (variant & 2) != 0,
                     .scale = 2.5f};
      for (const KernelTable* table : tables()) {
        SCOPED_TRACE(fmt::format("{} {} of {}, variant {}", table->name, top_k, experts, variant));
        Chosen chosen = route(*table, args, logits);
        for (int64_t r = 0; r < kRows; ++r) {
          expect_route(args, logits.data() + r * experts, chosen, r);
        }
        EXPECT_TRUE(same_bits(chosen.weights, route(*table, args, logits, &threads).weights));
      }
    }
  }
}

TEST(Route, PrefersTheLowestIndexAmongEquals) {
  for (const KernelTable* table : tables()) {
    RouteArgs args{.experts = 40, .top_k = 3, .groups = 4, .top_groups = 2};
    EXPECT_EQ(route(*table, args, std::vector<float>(40, 1.5f)).ids,
              (std::vector<int32_t>{0, 1, 2}));
    std::vector<float> logits(40, 0.0f);
    logits[17] = logits[35] = logits[36] = 1;
    EXPECT_EQ(route(*table, args, logits).ids, (std::vector<int32_t>{17, 35, 36}));
  }
}

// Whatever the numbers, the ids are distinct and in range.
TEST(Route, ChoosesExpertsWhateverTheNumbers) {
  Random random(5);
  constexpr int64_t kExperts = 24;
  const float specials[] = {NAN, kInfinity, -kInfinity, 0, 1e30f, -1e30f};
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits = random.normals(kExperts), bias = random.normals(kExperts);
    for (float& x : logits) x = random.below(3) > 0 ? specials[random.below(6)] : x;
    for (float& x : bias) x = random.below(3) > 1 ? specials[random.below(6)] : x;
    if (round == 0) logits.assign(kExperts, NAN);
    RouteArgs args{.bias = round % 2 ? bias.data() : nullptr,
                   .experts = kExperts,
                   .top_k = 6,
                   .groups = round % 3 ? 6 : 1,
                   .top_groups = round % 3 ? 2 : 1,
                   .score = round % 5 ? RouterScore::kSigmoid : RouterScore::kSoftmax,
                   .normalise = true};
    for (const KernelTable* table : tables()) {
      std::vector<int32_t> ids = route(*table, args, logits).ids;
      std::ranges::sort(ids);
      EXPECT_TRUE(ids.front() >= 0 && ids.back() < kExperts);
      EXPECT_TRUE(std::ranges::adjacent_find(ids) == ids.end());
    }
  }
}

TEST(CombineExperts, SumsInTheOrderOfTheChoices) {
  constexpr int64_t kRows = 9, kTopK = 5;
  Random random(6);
  ThreadPool threads(2);
  for (int64_t dim : {1, 16, 37, 130}) {
    std::vector<float> x = random.normals(kRows * (dim + 3)), shared = random.normals(kRows * dim);
    std::vector<float> expert_rows = random.normals(kRows * kTopK * dim);
    std::vector<float> weights = random.normals(kRows * kTopK);
    std::vector<int32_t> places(kRows * kTopK);
    for (int32_t& place : places) place = static_cast<int32_t>(random.below(kRows * kTopK)) - 8;
    for (const KernelTable* table : tables()) {
      std::vector<float> first;
      for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &threads}) {
        std::vector<float> y(kRows * dim, NAN);
        table->combine_experts({.launch = {.threads = pool},
                                .x = x.data(),
                                .x_row_stride = dim + 3,
                                .expert_rows = expert_rows.data(),
                                .places = places.data(),
                                .weights = weights.data(),
                                .shared = dim == 16 ? nullptr : shared.data(),
                                .y = y.data(),
                                .rows = kRows,
                                .dim = dim,
                                .top_k = kTopK});
        if (pool == nullptr) first = y;
        EXPECT_TRUE(same_bits(first, y));
      }
      for (int64_t i = 0; i < kRows * dim; ++i) {
        int64_t r = i / dim, c = i % dim;
        double sum = dim == 16 ? 0 : shared[i], size = std::abs(sum);
        for (int64_t j = r * kTopK; j < (r + 1) * kTopK; ++j) {
          double value = places[j] < 0 ? x[r * (dim + 3) + c] : expert_rows[places[j] * dim + c];
          sum += weights[j] * value;
          size += std::abs(weights[j] * value);
        }
        ASSERT_NEAR(first[i], sum, 4 * kEpsilon * size) << table->name << ' ' << i;
      }
    }
  }
}

// Every choice of a computing expert has its own place; those of one expert are contiguous, in the
// order of the choices.
TEST(SortExperts, IsStableAndCountsWhatWasChosen) {
  constexpr int64_t kExperts = 5, kIdentities = 2;
  Random random(9);
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    for (int64_t rows : {0, 1, 7, 60, 200}) {  // few choices, and more than few
      for (int64_t top_k : {1, 3}) {
        std::vector<int32_t> ids(rows * top_k), places(ids.size(), -7), sources(ids.size(), -7);
        for (int32_t& id : ids) id = static_cast<int32_t>(random.below(kExperts + kIdentities));
        std::vector<int32_t> begins(kExperts + 1, -7);
        std::vector<int64_t> counts(kExperts + kIdentities, 100);
        table->sort_experts({.ids = ids.data(),
                             .rows = rows,
                             .top_k = top_k,
                             .experts = kExperts,
                             .begins = begins.data(),
                             .places = places.data(),
                             .sources = sources.data(),
                             .counts = counts.data()});
        int32_t place = 0;
        for (int32_t e = 0; e < kExperts + kIdentities; ++e) {
          if (e <= kExperts) {
            EXPECT_EQ(begins[e], place) << e;
          }
          EXPECT_EQ(counts[e], 100 + std::ranges::count(ids, e));
          for (size_t i = 0; i < ids.size(); ++i) {
            if (ids[i] != e) continue;
            EXPECT_EQ(places[i], e < kExperts ? place : -1);
            if (e >= kExperts) continue;
            EXPECT_EQ(sources[place++], static_cast<int64_t>(i) / top_k);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace banyan::moe_test
