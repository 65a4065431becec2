// The formats of cached keys and values: memory, refusals, and results.
#include <gtest/gtest.h>

#include "engine/assemble.h"
#include "engine/startup/memory_plan.h"
#include "kernels/select.h"
#include "models/load.h"
#include "support/drive.h"
#include "support/models/grown_checkpoint.h"
#include "support/models/hybrid_model.h"
#include "support/value_or_abort.h"

namespace banyan::test::kv_cache_dtype_test {
namespace {

EngineConfig config_of(const std::string& model, const std::string& cache) {
  return {.model_path = golden_folder(model),
          .dtype = "bf16",
          .kernels = "portable",
          .threads = 1,
          .kv_cache_dtype = cache,
          .page_size_tokens = 16};
}

EngineInfo inspected(const EngineConfig& config) {
  auto info = inspect_model(config);
  EXPECT_TRUE(info.has_value()) << info.error().message;
  return *info;
}

TEST(KvCacheDtype, TakesAByteAColumnAndFourForTheScale) {
  constexpr int64_t kRows = 2 * 2 * 2, kWidth = 24;  // layers, K and V, heads
  for (auto [cache, bytes] : {std::pair{"auto", 2 * kWidth},
                              {"bf16", 2 * kWidth},
                              {"f32", 4 * kWidth},
                              {"int8", kWidth + 4},
                              {"fp8_e4m3", kWidth + 4},
                              {"fp8", kWidth + 4}}) {
    EXPECT_EQ(inspected(config_of("qwen3-tied", cache)).state_bytes_per_token, kRows * bytes)
        << cache;
  }
  EXPECT_EQ(inspected(config_of("qwen3-tied", "auto")).kv_cache_dtype, "bf16");
  EXPECT_EQ(inspected(config_of("qwen3-tied", "fp8")).kv_cache_dtype, "fp8_e4m3");
  EXPECT_EQ(inspected(config_of("qwen3-tied", "int8")).kv_cache_dtype, "int8");
}

TEST(KvCacheDtype, OfLatentsHasAScaleForThePartThatTurnsToo) {
  EngineInfo plain = inspected(config_of("deepseek-v3", "bf16"));
  EngineInfo small = inspected(config_of("deepseek-v3", "int8"));
  auto layers = static_cast<int64_t>(plain.layers.size());
  int64_t width = plain.state_bytes_per_token / layers / 2;
  EXPECT_EQ(small.state_bytes_per_token, layers * ((width + 3) / 4 * 4 + 8));
}

TEST(KvCacheDtype, LeavesRecurrentStatesAsTheyAre) {
  EngineInfo plain = inspected(config_of("kimi-linear", "auto"));
  EngineInfo small = inspected(config_of("kimi-linear", "int8"));
  EXPECT_EQ(small.state_bytes_per_sequence, plain.state_bytes_per_sequence);
  EXPECT_LT(small.state_bytes_per_token, plain.state_bytes_per_token);
}

TEST(KvCacheDtype, MoreTokensFit) {
  const KernelTable* kernels = *select_kernels("portable");
  ThreadPool threads(1);
  auto tokens = [&](const char* cache) {
    EngineConfig config = config_of("qwen3-tied", cache);
    LoadedModel model =
        value_or_abort(load_model(config, {.kernels = kernels, .threads = &threads, .dry = true}));
    return value_or_abort(plan_memory(config, model, *kernels, 1, 32 << 20)).total_tokens_max;
  };
  int64_t plain = tokens("auto");
  EXPECT_GT(plain, 0);
  EXPECT_GT(10 * tokens("int8"), 14 * plain);
  EXPECT_EQ(tokens("int8"), tokens("fp8_e4m3"));
}

TEST(KvCacheDtype, IsRefusedWhereNothingIsKept) {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder, {.full = false, .window = false});
  config.kv_cache_dtype = "int8";
  auto engine = EngineAssembly::load(config, hybrid_families(), {}, {});
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().message.find("leave out --kv-cache-dtype"), std::string::npos)
      << engine.error().message;
}

// Rows are rounded one by one, so a prompt has the same bits when it is read in other chunks and
// after a cached prefix.
TEST(KvCacheDtype, ChunksAndCachedPrefixesChangeNoBit) {
  std::vector<TokenId> prompt;
  for (TokenId i = 0; i < 90; ++i) prompt.push_back(i * 7 % 90);
  GenerateRequest request = {.prompt = prompt,
                             .sampling = {.temperature = 0},
                             .options = {.max_new_tokens = 20, .top_logprobs = 3}};
  for (const std::string& kernels : available_kernels()) {
    for (const char* model : {"qwen3-tied", "mistral-window", "gpt-oss", "deepseek-v3"}) {
      for (const char* cache : {"int8", "fp8_e4m3"}) {
        EngineConfig config = config_of(model, cache);
        config.kernels = kernels;
        config.total_tokens_max = 512;
        Heard whole = run_alone(*load_engine(config), request);
        config.chunked_prefill_tokens = 7;
        config.threads = 3;
        std::unique_ptr<Engine> engine = load_engine(config);
        for (bool cached : {false, true}) {
          Heard heard = run_alone(*engine, request);
          EXPECT_EQ(heard.cached_tokens > 0, cached);
          EXPECT_EQ(heard.output_ids(), whole.output_ids());
          EXPECT_TRUE(same_bits(heard.output_logprobs(), whole.output_logprobs()))
              << kernels << " " << model << " " << cache;
        }
      }
    }
  }
}

}  // namespace
}  // namespace banyan::test::kv_cache_dtype_test
