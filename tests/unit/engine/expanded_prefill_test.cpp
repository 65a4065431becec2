// Latent attention with expanded prompts: the same bits however a prompt is cut and batched, close
// to the absorbed form, and no reuse of generated states.
#include <gtest/gtest.h>

#include "kernels/select.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::expanded_prefill_test {
namespace {

// DeepSeek's layers with random weights, and a context of several blocks of keys. In bf16 its heads
// are such that tables with products of pairs take them.
EngineConfig latent_model(const TemporaryFolder& folder, const std::string& dtype,
                          const std::string& mla_prefill = "expanded") {
  Json config = CheckpointCopy("deepseek-v3").config;
  config.update({{"max_position_embeddings", 4096},
                 {"qk_nope_head_dim", 32},
                 {"qk_rope_head_dim", 32},
                 {"v_head_dim", dtype == "bfloat16" ? 32 : 17},
                 {"torch_dtype", dtype}});
  folder.write("config.json", config.dump());
  return {.model_path = folder.path(),
          .load_format = "dummy",
          .threads = 1,
          .mla_prefill = mla_prefill,
          .page_size_tokens = 16,
          .total_tokens_max = 2048,
          .chunked_prefill_tokens = 2048};
}

std::vector<TokenId> tokens_from(TokenId first, int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back((first + static_cast<TokenId>(i) * 7) % 89);
  return tokens;
}

TEST(ExpandedPrefill, LongPromptsHaveTheSameBitsForAnyCut) {
  std::vector<TokenId> prompt = tokens_from(5, 1100);
  for (const std::string& kernels : all_kernels()) {
    SCOPED_TRACE(kernels);
    TemporaryFolder folder;
    bool rounds = kernels.starts_with("avx") || kernels == "amx";
    EngineConfig config = latent_model(folder, rounds ? "bfloat16" : "float32");
    config.kernels = kernels;
    std::vector<float> whole = all_logits(*load_runner(config), prompt, 1100);
    config.threads = 2;
    config.page_size_tokens = 4;
    std::unique_ptr<Runner> runner = load_runner(config);
    for (int64_t chunk : {200, 700}) {
      EXPECT_TRUE(same_bits(all_logits(*runner, prompt, chunk), whole)) << chunk;
    }
  }
}

TEST(ExpandedPrefill, IsTheAbsorbedFormUpToRounding) {
  std::vector<TokenId> prompt = tokens_from(5, 1100);
  TemporaryFolder folder;
  auto logits = [&](const char* form) {
    return all_logits(*load_runner(latent_model(folder, "float32", form)), prompt, 1100);
  };
  std::vector<float> absorbed = logits("absorbed"), expanded = logits("expanded");
  EXPECT_FALSE(same_bits(absorbed, expanded)) << "one form stands for both";
  ASSERT_EQ(absorbed.size(), expanded.size());
  for (size_t i = 0; i < absorbed.size(); ++i) ASSERT_NEAR(absorbed[i], expanded[i], 1e-4);
}

// Prompts of one block of keys and of several share steps with each other and with tokens that are
// generated.
TEST(ExpandedPrefill, RequestsBesideEachOtherGetTheirNaiveRuns) {
  TemporaryFolder folder;
  EngineConfig config = latent_model(folder, "bfloat16");
  config.radix_cache = false;
  std::unique_ptr<Engine> naive = load_engine(config);
  config.radix_cache = true;
  config.threads = 2;
  config.chunked_prefill_tokens = 96;
  std::unique_ptr<Engine> engine = load_engine(config);
  std::vector<GenerateRequest> requests;
  for (int64_t length : {20, 700, 30, 520, 1}) {
    requests.push_back({.prompt = tokens_from(static_cast<TokenId>(length % 3), length),
                        .sampling = {.temperature = 0},
                        .options = {.max_new_tokens = 12}});
  }
  std::vector<Heard> heard(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(engine->submit(requests[i], hear_into(heard[i])).has_value());
  }
  while (engine->step()) {
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    Heard alone = run_alone(*naive, requests[i]);
    EXPECT_EQ(heard[i].output_ids(), alone.output_ids()) << i;
    EXPECT_TRUE(same_bits(heard[i].output_logprobs(), alone.output_logprobs())) << i;
  }
}

// Of a prompt of 20 tokens, an answer of 30 and a second prompt that goes on from it.
int64_t resumed_behind(const std::string& mla_prefill, bool reuse_generated_state) {
  TemporaryFolder folder;
  EngineConfig config = latent_model(folder, "float32", mla_prefill);
  config.reuse_generated_state = reuse_generated_state;
  std::unique_ptr<Engine> engine = load_engine(config);
  GenerateRequest request{.prompt = tokens_from(1, 20),
                          .sampling = {.temperature = 0},
                          .options = {.max_new_tokens = 30}};
  Heard first = run_alone(*engine, request);
  for (TokenId token : first.output_ids()) request.prompt.push_back(token);
  request.prompt.push_back(3);
  return run_alone(*engine, request).cached_tokens;
}

TEST(ExpandedPrefill, ResumesBehindPromptsAndNotBehindAnswers) {
  EXPECT_EQ(resumed_behind("absorbed", false), 49);
  EXPECT_EQ(resumed_behind("expanded", false), 20);
  EXPECT_EQ(resumed_behind("expanded", true), 49);
}

TEST(ExpandedPrefill, IsRefusedWhereThereAreNoLatents) {
  for (const char* golden : {"llama2-mha", "qwen3-moe", "ling2"}) {
    TemporaryFolder folder;
    folder.write("config.json", CheckpointCopy(golden).config.dump());
    EngineConfig config = {.model_path = folder.path(), .load_format = "dummy", .threads = 1};
    EXPECT_TRUE(inspect_model(config).has_value()) << golden;
    config.mla_prefill = "expanded";
    auto info = inspect_model(config);
    ASSERT_FALSE(info.has_value()) << golden;
    EXPECT_NE(info.error().message.find("no latent attention (MLA)"), std::string::npos)
        << info.error().message;
  }
}

TEST(ExpandedPrefill, SaysWhatItCosts) {
  TemporaryFolder folder;
  auto inspect = [&](const char* form) {
    return *inspect_model(latent_model(folder, "float32", form));
  };
  EngineInfo absorbed = inspect("absorbed"), expanded = inspect("expanded");
  auto layers = static_cast<int64_t>(expanded.layers.size());
  EXPECT_EQ(absorbed.prompt_attention_flops_per_key, 0);
  EXPECT_EQ(expanded.prompt_attention_flops_per_key, layers * 2 * 3 * (32 + 32 + 17));
  EXPECT_EQ(expanded.attention_flops_per_key, absorbed.attention_flops_per_key);
  EXPECT_EQ(expanded.parameters_total, absorbed.parameters_total);
  EXPECT_EQ(expanded.state_bytes_per_token, absorbed.state_bytes_per_token);
  EXPECT_GE(expanded.weight_bytes - absorbed.weight_bytes, layers * 3 * 32 * 20 * 4);
  EXPECT_NE(expanded.layers[0].mixer.find("expanded prefill"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::expanded_prefill_test
