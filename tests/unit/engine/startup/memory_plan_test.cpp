// The memory plan of a model, made before it is loaded.
#include "engine/startup/memory_plan.h"

#include <gtest/gtest.h>

#include "support/drive.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::test::memory_plan_test {
namespace {

EngineConfig config_of(const std::string& model) {
  return {.model_path = golden_folder(model), .threads = 1};
}

EngineInfo inspected(const EngineConfig& config) {
  auto info = inspect_model(config);
  EXPECT_TRUE(info.has_value()) << info.error().message;
  return *info;
}

std::string refusal(const EngineConfig& config) {
  auto info = inspect_model(config);
  return info ? "" : info.error().message;
}

TEST(MemoryPlan, CountsParametersAndBytes) {
  EngineConfig config = config_of("qwen3-tied");  // V 131, D 48, F 52, 2 layers, 6 + 2 heads of 24
  config.kernels = "portable";
  EngineInfo info = inspected(config);
  int64_t layer = 48 * (144 + 48 + 48) + 144 * 48 + 3 * 48 * 52 + 2 * 48 + 2 * 24;
  EXPECT_EQ(info.parameters_total, 131 * 48 + 2 * layer + 48);
  EXPECT_EQ(info.parameters_active, info.parameters_total) << "the tied head reads the embedding";
  EXPECT_EQ(info.state_bytes_per_token, 2 * 2 * 2 * 24 * 4);
  EXPECT_EQ(info.state_bytes_per_sequence, 0);
  EXPECT_GE(info.weight_bytes, 4 * info.parameters_total);
  config.dtype = "bf16";
  EXPECT_EQ(inspected(config).state_bytes_per_token, 2 * 2 * 2 * 24 * 2);

  EngineInfo untied = inspected(config_of("llama2-mha"));
  EXPECT_EQ(untied.parameters_total - untied.parameters_active, 97 * 48) << "embedding rows";
  EXPECT_EQ(untied.layers.size(), 2u);
  EXPECT_EQ(untied.layers[0].mixer, "gqa");
  EXPECT_EQ(inspected(config_of("mistral-window")).layers[2].mixer, "gqa, window 11");
}

TEST(MemoryPlan, InspectingSaysWhatLoadingTakes) {
  for (const char* model : {"qwen3-tied", "llama32-tied-sharded", "qwen2-window"}) {
    EngineConfig config = config_of(model);
    config.total_tokens_max = 1000;
    EngineInfo loaded = load_engine(config)->info(), info = inspected(config);
    EXPECT_EQ(info.weight_bytes, loaded.weight_bytes);
    EXPECT_EQ(info.parameters_total, loaded.parameters_total);
    EXPECT_EQ(info.step_bytes, loaded.step_bytes);
    EXPECT_EQ(info.total_tokens_max, 15 * 64) << "whole pages";
    EXPECT_EQ(loaded.total_tokens_max, 15 * 64);
  }
}

TEST(MemoryPlan, ChoosesWhatCanBeOfUse) {
  EngineConfig config = config_of("qwen3-tied");
  EXPECT_EQ(inspected(config).total_tokens_max, 1 << 18) << "room for prefixes";
  config.radix_cache = false;
  config.running_max = 3;
  EXPECT_EQ(inspected(config).total_tokens_max, 3 * 256);
  config.context_length_tokens = 100;
  EXPECT_EQ(inspected(config).total_tokens_max, 3 * 128);
}

TEST(MemoryPlan, RefusesWhatDoesNotFitByName) {
  EngineConfig config = config_of("qwen3-tied");
  config.context_length_tokens = 257;
  EXPECT_NE(refusal(config).find("context_length 257 exceeds the model's context of 256 tokens"),
            std::string::npos)
      << refusal(config);
  config = config_of("qwen3-tied");
  config.total_tokens_max = int64_t{1} << 31;
  EXPECT_EQ(inspected(config).total_tokens_max, 0) << "inspecting tells, loading refuses";
  auto runner = Runner::load(config, {});
  ASSERT_FALSE(runner);
  EXPECT_NE(runner.error().message.find("the states of 2147483648 tokens"), std::string::npos)
      << runner.error().message;
}

// The arena is sized by measuring; a step of the most rows, all of which want logits, fits.
TEST(MemoryPlan, TheLargestStepFitsTheArena) {
  for (int rows : {1, 2, 63, 64, 65, 200}) {
    EngineConfig config = config_of("qwen3-tied");
    config.running_max = 1;
    config.chunked_prefill_tokens = rows;
    std::unique_ptr<Runner> runner = load_runner(config);
    std::vector<TokenId> tokens(200, 7);
    EXPECT_EQ(all_logits(*runner, tokens, rows).size(), 200u * 131);
  }
}

}  // namespace
}  // namespace banyan::test::memory_plan_test
