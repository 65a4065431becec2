// Counts of chosen experts do not depend on the composition of steps.
#include <gtest/gtest.h>

#include <numeric>

#include "server/status/metrics.h"
#include "support/drive.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::expert_counts_test {
namespace {

EngineConfig longcat(bool counts) {
  return {.model_path = test::golden_folder("longcat-flash"),
          .threads = 1,
          .total_tokens_max = 1024,
          .chunked_prefill_tokens = 8,
          .radix_cache = false,
          .expert_counts = counts};
}

GenerateRequest request(TokenId first) {
  GenerateRequest request{.sampling = {.temperature = 0}, .options = {.max_new_tokens = 5}};
  for (TokenId i = 0; i < 11; ++i) request.prompt.push_back((first * 7 + i * 5) % 97);
  return request;
}

void add(std::vector<int64_t>& sums, const std::vector<int64_t>& counts) {
  sums.resize(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) sums[i] += counts[i];
}

TEST(ExpertCounts, OfABatchAreThoseOfItsRequests) {
  auto together = test::load_engine(longcat(true));
  std::vector<test::Heard> heard(3);
  for (TokenId i = 0; i < 3; ++i) {
    ASSERT_TRUE(together->submit(request(i), test::hear_into(heard[static_cast<size_t>(i)])));
  }
  while (together->step()) continue;
  std::vector<ExpertCounts> batch = together->expert_counts();
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[1].layer, "model.layers.1.mlp");
  for (size_t layer = 0; layer < batch.size(); ++layer) {
    std::vector<int64_t> experts, identities;
    for (TokenId i = 0; i < 3; ++i) {
      auto alone = test::load_engine(longcat(true));
      test::run_alone(*alone, request(i));
      std::vector<ExpertCounts> counts = alone->expert_counts();
      EXPECT_EQ(counts[layer].rows, 11 + 4) << "the last token is not computed";
      add(experts, counts[layer].experts);
      add(identities, counts[layer].identities);
    }
    EXPECT_EQ(batch[layer].experts, experts);
    EXPECT_EQ(batch[layer].identities, identities);
    int64_t chosen = std::accumulate(experts.begin(), experts.end(), int64_t{0});
    int64_t skipped = std::accumulate(identities.begin(), identities.end(), int64_t{0});
    EXPECT_EQ(chosen + skipped, 3 * 15 * 4);
    EXPECT_GT(skipped, 0);
    EXPECT_EQ(batch[layer].active_mean(), static_cast<double>(chosen) / 45);
  }
}

TEST(ExpertCounts, AreThereWhenAskedForOnly) {
  auto engine = test::load_engine(longcat(false));
  test::run_alone(*engine, request(1));
  EXPECT_TRUE(engine->expert_counts().empty());
  EngineConfig dense = longcat(true);
  dense.model_path = test::golden_folder("qwen3-tied");
  EXPECT_TRUE(test::load_engine(dense)->expert_counts().empty());
}

TEST(ExpertCounts, AreMetrics) {
  Metrics metrics;
  metrics.begin("m", {}, 1);
  EXPECT_EQ(metrics.text({}).find("expert"), std::string::npos);
  std::vector<ExpertCounts> layers = {
      {.layer = "a", .rows = 4, .experts = {3, 5}, .identities = {1, 3}}};
  std::string text = metrics.text({.experts = layers});
  for (const char* line :
       {"# TYPE banyan:expert_tokens_total counter",
        "banyan:expert_tokens_total{model_name=\"m\",layer=\"a\",expert=\"1\"} 5",
        "banyan:expert_tokens_total{model_name=\"m\",layer=\"a\",expert=\"identity\"} 4",
        "banyan:active_experts_mean{model_name=\"m\",layer=\"a\"} 2"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

}  // namespace
}  // namespace banyan::expert_counts_test
