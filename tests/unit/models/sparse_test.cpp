// Families with mixtures of experts and latent attention: invalid configs, missing and superfluous
// tensors, and the parameter counts of published shapes.
#include <gtest/gtest.h>

#include <functional>

#include "banyan/engine.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::test::sparse_test {
namespace {

TEST(SparseFamilies, NameTensorsThatDoNotFit) {
  const std::string layer = "model.layers.1.mlp.";
  expect_refused("deepseek-v3", layer + "experts.11.up_proj.weight [12, 40] is missing",
                 [&](auto& c) { c.erase(layer + "experts.11.up_proj.weight"); });
  expect_refused("deepseek-v3", "experts.10.up_proj.weight [12, 40] is not used",
                 [](auto& c) { c.config["n_routed_experts"] = 8; });
  expect_refused("deepseek-v3", layer + "gate.e_score_correction_bias [12] is missing",
                 [&](auto& c) { c.erase(layer + "gate.e_score_correction_bias"); });
  expect_refused("deepseek-v3", layer + "gate.weight has shape [40, 12]",
                 [&](auto& c) { c.tensor(layer + "gate.weight").shape = {40, 12}; });
  expect_refused("deepseek-v3", "kv_b_proj.weight has shape [11, 120]", [](auto& c) {
    c.tensor("model.layers.0.self_attn.kv_b_proj.weight").shape = {11, 120};
  });
  // A layer that predicts a further token may be left out of the model, but not just anything.
  expect_refused("deepseek-v3", "model.layers.3.enorm.weight [40] is not used",
                 [](auto& c) { c.config["num_nextn_predict_layers"] = 0; });
  expect_refused("deepseek-v3", "model.layers.3.other.weight [1] is not used", [](auto& c) {
    c.tensors.push_back({"model.layers.3.other.weight", "F32", {1}, "1234"});
  });
  expect_refused("longcat-flash", "model.mtp.other.weight [1] is not used", [](auto& c) {
    c.tensors.push_back({"model.mtp.other.weight", "F32", {1}, "1234"});
  });
  // A gate belongs to other families.
  expect_refused(
      "ling2", "model.layers.1.attention.g_proj.weight [3, 40] is not used", [](auto& c) {
        std::string bytes(3 * 40 * 4, '\0');
        c.tensors.push_back({"model.layers.1.attention.g_proj.weight", "F32", {3, 40}, bytes});
      });
}

// The keys of blocks stand or fall together, and options take the place of their values.
TEST(SparseFamilies, ReadBlocksOfKeysStrictly) {
  auto with = [](const char* key, const Json& value) {
    return [key, value](CheckpointCopy& c) { c.config[key] = value; };
  };
  for (const char* key : {"moba_block_size", "moba_topk", "moba_layer_freq"}) {
    expect_refused("ring-sparse", key, [key](CheckpointCopy& c) { c.config.erase(key); });
  }
  expect_refused("ring-sparse", "moba_topk", with("moba_topk", 0));
  expect_refused("ring-sparse", "moba_layer_freq has 3 entries for 4 layers",
                 with("moba_layer_freq", {1, 0, 1}));
  expect_refused("ring-sparse", "row for every 24 tokens", with("moba_block_size", 24));
}

std::string mixer_of(const EngineConfig& config, size_t layer) {
  auto info = inspect_model(config);
  return info ? info->layers[layer].mixer : info.error().message;
}

TEST(SparseFamilies, TakeSizesOfBlocksFromOptions) {
  EngineConfig config = {.model_path = golden_folder("ring-sparse")};
  EXPECT_EQ(mixer_of(config, 0), "gqa, 3 blocks of 8");
  EXPECT_EQ(mixer_of(config, 2), "gqa");  // every third attends to all
  config.moba_top_k = 5;
  EXPECT_EQ(mixer_of(config, 0), "gqa, 5 blocks of 8 by option");
  EXPECT_EQ(mixer_of(config, 2), "gqa");
  config.model_path = golden_folder("qwen3-tied");
  EXPECT_NE(mixer_of(config, 0).find("needs both"), std::string::npos) << mixer_of(config, 0);
  config.moba_block_tokens = 16;
  EXPECT_EQ(mixer_of(config, 0), "gqa, 5 blocks of 16 by option");
  config.model_path = golden_folder("deepseek-v3");
  EXPECT_NE(mixer_of(config, 0).find("leave out --moba-block-size"), std::string::npos);
  config.model_path = golden_folder("minimax-m3");  // layers without an index stay as they are
  EXPECT_NE(mixer_of(config, 0).find("leave out --moba-block-size"), std::string::npos);
}

// Without use_moba_decode generated tokens attend to all keys; no option changed that.
TEST(SparseFamilies, TakeBlocksInDecodeFromTheConfigOrAnOption) {
  CheckpointCopy copy("ring-sparse");
  copy.config.erase("use_moba_decode");
  TemporaryFolder folder;
  copy.save(folder);
  EngineConfig config = {.model_path = folder.path()};
  EXPECT_EQ(mixer_of(config, 0), "gqa, 3 blocks of 8 in prompts");
  config.moba_decode = true;
  EXPECT_EQ(mixer_of(config, 0), "gqa, 3 blocks of 8");
  config.moba_top_k = 5;
  EXPECT_EQ(mixer_of(config, 0), "gqa, 5 blocks of 8 by option");
  config = {.model_path = golden_folder("ring-sparse"), .moba_decode = false};
  EXPECT_EQ(mixer_of(config, 0), "gqa, 3 blocks of 8 in prompts");
  config.model_path = golden_folder("qwen3-tied");
  std::string refused = mixer_of(config, 0);
  EXPECT_TRUE(refused.contains("moba_decode is false")) << refused;
  EXPECT_TRUE(refused.contains("leave out --moba-decode")) << refused;
  config.moba_block_tokens = config.moba_top_k = 16;
  EXPECT_EQ(mixer_of(config, 0), "gqa, 16 blocks of 16 in prompts by option");
  // Two forms of pages are not those of latents.
  config.mla_prefill = "expanded";
  EXPECT_TRUE(mixer_of(config, 0).contains("has no latent attention")) << mixer_of(config, 0);
}

// Keys of MiniMax-M3's index, as published and as transformers saves them.
TEST(SparseFamilies, ReadAnIndexOfBlocksStrictly) {
  auto with = [](const char* key, const Json& value) {
    return [key, value](CheckpointCopy& c) { c.config["sparse_attention_config"][key] = value; };
  };
  EXPECT_EQ(mixer_of({.model_path = golden_folder("minimax-m3")}, 0), "gqa");
  EXPECT_EQ(mixer_of({.model_path = golden_folder("minimax-m3")}, 1),
            "gqa, 4 blocks of 4 by an index");
  expect_refused("minimax-m3", "sparse_num_index_heads 3 differs from num_key_value_heads 2",
                 with("sparse_num_index_heads", 3));
  expect_refused("minimax-m3", "sparse_index_dim 4 is less than rotary_dim 6",
                 with("sparse_index_dim", 4));
  expect_refused("minimax-m3", "sparse_local_block 5 exceeds sparse_topk_blocks 4",
                 with("sparse_local_block", 5));
  expect_refused("minimax-m3", "sparse_score_type", with("sparse_score_type", "mean"));
  expect_refused("minimax-m3", "sparse_init_block", with("sparse_init_block", 1));
  expect_refused("minimax-m3", "sparse_attention_freq has 2 entries for 3 layers",
                 with("sparse_attention_freq", {0, 1}));
  expect_refused("minimax-m3", "sparse_disable_index_value: 0 in layer 1",
                 with("sparse_disable_index_value", {0, 0, 1}));
  expect_refused("minimax-m3", "index_q_proj.weight [20, 24] is not used",
                 with("sparse_attention_freq", {0, 0, 1}));
}

TEST(SparseFamilies, ReadAnIndexOfBlocksThatTransformersSaved) {
  auto save = [](CheckpointCopy& c) {
    c.config.erase("sparse_attention_config");
    c.config.erase("moe_layer_freq");
    c.config["hidden_act"] = "silu";
    c.config["layer_types"] = {"full_attention", "minimax_m3_sparse", "minimax_m3_sparse"};
    c.config["mlp_layer_types"] = {"dense", "sparse", "sparse"};
    c.config.update({{"index_n_heads", 2},
                     {"index_head_dim", 10},
                     {"index_block_size", 4},
                     {"index_topk_blocks", 4},
                     {"index_local_blocks", 1}});
  };
  EXPECT_EQ(logits_of("minimax-m3", save), logits_of("minimax-m3"));
}

TEST(SparseFamilies, RefuseRoutersThatMakeNoSense) {
  auto with = [](const char* key, const Json& value) {
    return [key, value](CheckpointCopy& c) { c.config[key] = value; };
  };
  expect_refused("deepseek-v3", "12 experts do not divide into 5 groups", with("n_group", 5));
  expect_refused("deepseek-v3", "topk_group 5 exceeds the number of groups, 4",
                 with("topk_group", 5));
  expect_refused("deepseek-v3", "top_k 7 exceeds the experts in 2 groups of 3",
                 with("num_experts_per_tok", 7));
  expect_refused("deepseek-v3", "scoring_func", with("scoring_func", "softmax"));
  expect_refused("deepseek-v3", "self_attn.kv_a_proj_with_mqa.bias [28] is missing",
                 with("attention_bias", true));
  expect_refused("deepseek-v3", "n_routed_experts", with("n_routed_experts", 100000));
  expect_refused("longcat-flash", "zero_expert_type", with("zero_expert_type", "drop"));
  expect_refused("longcat-flash", "4099 experts; at most 4096", with("zero_expert_num", 4090));
  expect_refused("ling2", "partial_rotary_factor", with("partial_rotary_factor", 0.01));
  expect_refused("ling2", "use_nGPT", with("use_nGPT", true));
}

Result<EngineInfo> inspect_config(const Json& config) {
  TemporaryFolder folder;
  folder.write("config.json", config.dump());
  return inspect_model(
      {.model_path = folder.path(), .load_format = "dummy", .threads = 1, .total_tokens_max = 64});
}

// The figures of the technical report: 560 B parameters, 18.6 to 31.3 B of them active, 27 B on
// average; and 576 values per token in each of two attentions a layer.
TEST(SparseFamilies, LongcatFlashCountsWhatItsReportSays) {
  auto info = inspect_config({{"architectures", {"LongcatFlashForCausalLM"}},
                              {"vocab_size", 131072},
                              {"hidden_size", 6144},
                              {"num_layers", 28},
                              {"num_attention_heads", 64},
                              {"q_lora_rank", 1536},
                              {"kv_lora_rank", 512},
                              {"qk_nope_head_dim", 128},
                              {"qk_rope_head_dim", 64},
                              {"v_head_dim", 128},
                              {"ffn_hidden_size", 12288},
                              {"expert_ffn_hidden_size", 2048},
                              {"n_routed_experts", 512},
                              {"zero_expert_num", 256},
                              {"moe_topk", 12},
                              {"routed_scaling_factor", 6.0},
                              {"max_position_embeddings", 131072},
                              {"rms_norm_eps", 1e-5}});
  ASSERT_TRUE(info.has_value()) << info.error().message;
  auto billions = [](int64_t count) { return static_cast<double>(count) / 1e9; };
  EXPECT_NEAR(billions(info->parameters_total), 560, 2);
  EXPECT_NEAR(billions(info->parameters_active), 27, 0.5);
  EXPECT_NEAR(billions(info->parameters_active_max), 31.3, 0.5);
  EXPECT_NEAR(billions(info->parameters_active_min), 18.6, 0.5);
  EXPECT_EQ(info->state_bytes_per_token, 28 * 2 * 576 * 2);
  EXPECT_EQ(info->layers[0].mixer, "2 x mla, rank 512 + 64");
}

}  // namespace
}  // namespace banyan::test::sparse_test
