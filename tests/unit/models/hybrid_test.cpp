// Families with recurrent layers and MLA: wrong checkpoints, and published configs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "banyan/engine.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::hybrid_test {
namespace {

// Why a changed golden checkpoint does not load; "" if it does.
std::string problem(const std::string& golden, const std::function<void(CheckpointCopy&)>& change) {
  CheckpointCopy copy(golden);
  change(copy);
  TemporaryFolder folder;
  copy.save(folder);
  auto info = inspect_model({.model_path = folder.path(), .threads = 1, .total_tokens_max = 256});
  return info ? "" : info.error().message;
}

void expect_problem(const std::string& golden, const std::string& words,
                    const std::function<void(CheckpointCopy&)>& change) {
  std::string message = problem(golden, change);
  EXPECT_NE(message.find(words), std::string::npos) << message << "\n  does not say: " << words;
}

constexpr const char* kKda = "model.layers.0.attention.";
constexpr const char* kMla = "model.layers.1.attention.";  // of ling3-tiny

TEST(LingCheckpoint, MustHaveEveryTensorOfItsLayers) {
  EXPECT_EQ(problem("ling3-tiny", [](auto&) {}), "");
  for (const char* name : {"q_conv1d.weight", "A_log", "dt_bias", "b_proj.weight", "f_proj.weight",
                           "g_proj.weight", "o_norm.weight"}) {
    expect_problem("ling3-tiny", std::string(kKda) + name,
                   [&](auto& c) { c.erase(std::string(kKda) + name); });
  }
  for (const char* name : {"q_a_layernorm.weight", "kv_b_proj.weight", "dense.weight"}) {
    expect_problem("ling3-tiny", std::string(kMla) + name,
                   [&](auto& c) { c.erase(std::string(kMla) + name); });
  }
  expect_problem("ling3-tiny", "mlp.gate.expert_bias [12] is missing",
                 [](auto& c) { c.erase("model.layers.2.mlp.gate.expert_bias"); });
}

TEST(LingCheckpoint, MayHaveNoOther) {
  auto extra = [](const std::string& name) {
    return [name](CheckpointCopy& c) { c.tensors.push_back({name, "F32", {1}, "1234"}); };
  };
  for (const char* name : {"model.layers.0.attention.k_norm.weight", "extra",
                           "model.layers.5.unknown.weight", "model.layers.6.enorm.weight"}) {
    expect_problem("ling3-tiny", std::string(name) + " [1] is not used", extra(name));
  }
  EXPECT_EQ(problem("ling3-tiny", extra("model.layers.5.mlp.gate.weight")), "");
}

TEST(LingCheckpoint, OfAPredictorIsRefusedWhenTheConfigHasNone) {
  expect_problem("ling3-tiny", "model.layers.5.eh_proj.weight",
                 [](auto& c) { c.config["num_nextn_predict_layers"] = 0; });
}

// Both kinds of layers have a g_proj: of KDA one row for each channel, of MLA one for each head.
TEST(LingCheckpoint, GatesHaveTheShapeOfTheirLayersType) {
  auto swap = [](CheckpointCopy& c) {
    TestTensor& kda = c.tensor(std::string(kKda) + "g_proj.weight");
    TestTensor& mla = c.tensor(std::string(kMla) + "g_proj.weight");
    std::swap(kda.shape, mla.shape);
    std::swap(kda.bytes, mla.bytes);
  };
  expect_problem("ling3-tiny", "layers.0.attention.g_proj.weight has shape [3, 40] where [36, 40]",
                 swap);
  expect_problem("ling3-tiny", "layers.1.attention.g_proj.weight has shape [36, 40] where [3, 40]",
                 swap);
}

TEST(LingCheckpoint, TakesTheConfigThatTransformersWrites) {
  auto rewrite = [](CheckpointCopy& c) {
    c.config["linear_head_dim"] = c.config["head_dim"];
    c.config["head_dim"] = c.config["qk_rope_head_dim"];
    c.config["linear_num_heads"] = 3;
    c.config["layer_types"] = {"linear_attention", "full_attention", "linear_attention",
                               "full_attention", "full_attention"};
    for (auto [ours, theirs] : {std::pair{"num_experts", "num_local_experts"},
                                std::pair{"num_experts_per_tok", "num_experts_per_token"},
                                std::pair{"n_group", "num_expert_group"},
                                std::pair{"num_shared_experts", "n_shared_experts"},
                                std::pair{"norm_topk_prob", "moe_renormalize"},
                                std::pair{"num_nextn_predict_layers", "num_mtp_layers"},
                                std::pair{"max_position_embeddings", "model_max_length"}}) {
      c.config[theirs] = c.config[ours];
      c.config.erase(ours);
    }
    c.config["mlp_layer_types"] = {"dense", "sparse", "sparse", "sparse", "sparse"};
  };
  EXPECT_EQ(problem("ling3-tiny", rewrite), "");
}

TEST(LingCheckpoint, RefusesWhatItDoesNotCompute) {
  for (const char* key : {"use_nGPT", "value_norm", "use_mla_nope", "mtp_use_kda"}) {
    expect_problem("ling3-tiny", key, [&](auto& c) { c.config[key] = true; });
  }
  expect_problem("ling3-tiny", "gated_attention_proj_granularity_type",
                 [](auto& c) { c.config["gated_attention_proj_granularity_type"] = "token_wise"; });
  expect_problem("ling25", "linear_silu", [](auto& c) { c.config["linear_silu"] = true; });
  expect_problem("ling25", "qk_rope_head_dim", [](auto& c) { c.config["head_dim"] = 8; });
}

TEST(KimiLinearConfig, ListsEachLayerOnce) {
  EXPECT_EQ(problem("kimi-linear", [](auto&) {}), "");
  expect_problem("kimi-linear", "layer 5 is in neither",
                 [](auto& c) { c.config["linear_attn_config"]["kda_layers"] = {1, 2, 3}; });
  expect_problem("kimi-linear", "full_attn_layers lists layer 3",
                 [](auto& c) { c.config["linear_attn_config"]["full_attn_layers"] = {3, 4}; });
  expect_problem("kimi-linear", "kda_layers",
                 [](auto& c) { c.config["linear_attn_config"]["kda_layers"] = {0, 1, 2, 3, 5}; });
}

// Neither the authors' code nor transformers turns anything, whatever the file says or leaves out.
TEST(KimiLinearConfig, NeverRotates) {
  std::vector<float> logits = logits_of("kimi-linear");
  auto computes_the_same = [&](const char* key, const Json& value) {
    auto change = [&](CheckpointCopy& c) { c.config[key] = value; };
    EXPECT_EQ(logits_of("kimi-linear", change), logits) << key << " = " << value;
  };
  EXPECT_EQ(logits_of("kimi-linear", [](auto& c) { c.config.erase("mla_use_nope"); }), logits);
  computes_the_same("mla_use_nope", nullptr);
  computes_the_same("rope_theta", 2.0);
  computes_the_same("rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"mscale_all_dim", 1}});
  expect_problem("kimi-linear", "mla_use_nope = false is not supported",
                 [](auto& c) { c.config["mla_use_nope"] = false; });
}

TEST(KimiLinearConfig, TakesEitherNameOfADenseBlockAndOfEachKey) {
  auto rewrite = [](CheckpointCopy& c) {
    for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
      c.rename(fmt::format("model.layers.0.mlp.{}.weight", part),
               fmt::format("model.layers.0.block_sparse_moe.{}.weight", part));
    }
    for (auto [ours, theirs] : {std::pair{"num_experts", "num_local_experts"},
                                std::pair{"num_experts_per_token", "num_experts_per_tok"},
                                std::pair{"num_expert_group", "n_group"},
                                std::pair{"num_shared_experts", "n_shared_experts"},
                                std::pair{"moe_renormalize", "norm_topk_prob"},
                                std::pair{"model_max_length", "max_position_embeddings"}}) {
      c.config[theirs] = c.config[ours];
      c.config.erase(ours);
    }
    c.config.erase("first_k_dense_replace");  // as the tensors say
  };
  EXPECT_EQ(logits_of("kimi-linear", rewrite), logits_of("kimi-linear"));
  expect_problem("kimi-linear", "num_experts = 9, but num_local_experts = 8",
                 [](auto& c) { c.config["num_local_experts"] = 8; });
}

TEST(KimiLinearConfig, ListsOneTypeForEachLayer) {
  auto types = [](Json list) {
    return [list](CheckpointCopy& c) { c.config["layer_types"] = list; };
  };
  expect_problem("kimi-linear-saved", "layer_types has 1 entries for 3 layers",
                 types({"full_attention"}));
  expect_problem("kimi-linear-saved", "layer_types: \"mamba\" is not supported",
                 types({"mamba", "full_attention", "full_attention"}));
  expect_problem("kimi-linear-saved", "mlp_layer_types: \"wide\" is not supported",
                 [](auto& c) { c.config["mlp_layer_types"] = {"wide", "sparse", "sparse"}; });
}

constexpr const char* kDelta = "model.layers.0.linear_attn.";

TEST(QwenHybridCheckpoint, MustHaveEveryTensorOfItsLayers) {
  EXPECT_EQ(problem("qwen3-next", [](auto&) {}), "");
  for (const char* name : {"in_proj_qkvz.weight", "in_proj_ba.weight", "conv1d.weight", "A_log",
                           "dt_bias", "norm.weight", "out_proj.weight"}) {
    expect_problem("qwen3-next", std::string(kDelta) + name,
                   [&](auto& c) { c.erase(std::string(kDelta) + name); });
  }
  expect_problem("qwen3-next", "mlp.shared_expert_gate.weight",
                 [](auto& c) { c.erase("model.layers.0.mlp.shared_expert_gate.weight"); });
  expect_problem("qwen3-5", "layers.0.linear_attn.in_proj_z.weight",
                 [](auto& c) { c.erase("model.layers.0.linear_attn.in_proj_z.weight"); });
  expect_problem("qwen3-next", "q_proj.weight has shape [144, 24] where [96, 24] is expected",
                 [](auto& c) { c.config["head_dim"] = 8; });
}

TEST(QwenHybridCheckpoint, RefusesWhatItDoesNotCompute) {
  expect_problem("qwen3-next", "linear_num_value_heads 6 is not a multiple",
                 [](auto& c) { c.config["linear_num_key_heads"] = 4; });
  expect_problem("qwen3-next", "the rotary dimension",
                 [](auto& c) { c.config["partial_rotary_factor"] = 0.1; });
  expect_problem("qwen3-5", "attn_output_gate",
                 [](auto& c) { c.config["attn_output_gate"] = false; });
  expect_problem("qwen3-5", "layer_types: \"mamba\" is not supported",
                 [](auto& c) { c.config["layer_types"][0] = "mamba"; });
}

TEST(Lfm2Checkpoint, MustFitItsConfig) {
  EXPECT_EQ(problem("lfm2", [](auto&) {}), "");
  for (const char* name : {"conv.conv.weight", "conv.conv.bias", "conv.in_proj.weight",
                           "conv.out_proj.bias", "operator_norm.weight"}) {
    std::string full = std::string("model.layers.0.") + name;
    expect_problem("lfm2", full, [&](auto& c) { c.erase(full); });
  }
  expect_problem("lfm2", "w1.weight has shape",
                 [](auto& c) { c.config["block_auto_adjust_ff_dim"] = false; });
  expect_problem("lfm2-moe", "feed_forward.expert_bias",
                 [](auto& c) { c.erase("model.layers.1.feed_forward.expert_bias"); });
  expect_problem("lfm2-moe", "layer_types: \"mamba\" is not supported",
                 [](auto& c) { c.config["layer_types"][0] = "mamba"; });
}

TEST(GraniteHybridCheckpoint, MustFitItsConfig) {
  EXPECT_EQ(problem("granite-hybrid", [](auto&) {}), "");
  for (const char* name :
       {"mamba.in_proj.weight", "mamba.conv1d.weight", "mamba.conv1d.bias", "mamba.A_log",
        "mamba.dt_bias", "mamba.D", "mamba.norm.weight", "shared_mlp.input_linear.weight"}) {
    std::string full = std::string("model.layers.0.") + name;
    expect_problem("granite-hybrid", full, [&](auto& c) { c.erase(full); });
  }
  auto with = [](const char* key, const Json& value) {
    return [=](CheckpointCopy& c) { c.config[key] = value; };
  };
  expect_problem("granite-hybrid", "mamba_d_head 9", with("mamba_d_head", 9));
  expect_problem("granite-hybrid", "mamba_n_heads 6 is not a multiple", with("mamba_n_groups", 4));
  expect_problem("granite-hybrid", "time_step_limit", with("time_step_limit", {2, 1}));
  expect_problem("granite-hybrid", "position_embedding_type",
                 with("position_embedding_type", "alibi"));
  expect_problem("granite-hybrid", "\"conv\" is not supported",
                 with("layer_types", {"conv", "mamba", "mamba"}));
}

TEST(NemotronCheckpoint, MustFitItsConfig) {
  EXPECT_EQ(problem("nemotron-h", [](auto&) {}), "");
  for (const char* name :
       {"0.mixer.A_log", "0.mixer.conv1d.bias", "0.norm.weight", "1.mixer.experts.3.up_proj.weight",
        "1.mixer.shared_experts.down_proj.weight", "3.mixer.up_proj.weight"}) {
    std::string full = std::string("backbone.layers.") + name;
    expect_problem("nemotron-h", full, [&](auto& c) { c.erase(full); });
  }
  auto with = [](const char* key, const Json& value) {
    return [=](CheckpointCopy& c) { c.config[key] = value; };
  };
  expect_problem("nemotron-h", "4 blocks are named for 5 layers",
                 with("hybrid_override_pattern", "ME*-"));
  expect_problem("nemotron-h", "\"ME*-X\"", with("hybrid_override_pattern", "ME*-X"));
  expect_problem("nemotron-h", "moe_latent_size", with("moe_latent_size", 8));
  expect_problem("nemotron-h", "mlp_hidden_act", with("mlp_hidden_act", "silu"));
  expect_problem("nemotron-h", "mamba_num_heads 6 is not a multiple", with("n_groups", 4));
  auto rewrite = [](CheckpointCopy& c) {
    c.config.erase("hybrid_override_pattern");
    c.config["layers_block_type"] = {"mamba", "moe", "attention", "mlp", "linear_attention"};
  };
  EXPECT_EQ(logits_of("nemotron-h", rewrite), logits_of("nemotron-h"));
}

// The numbers of a published config, without its weights.
EngineInfo published(const Json& config) {
  TemporaryFolder folder;
  folder.write("config.json", config.dump());
  auto info = inspect_model({.model_path = folder.path(),
                             .load_format = "dummy",
                             .threads = 1,
                             .total_tokens_max = 4096});
  EXPECT_TRUE(info.has_value()) << info.error().message;
  return info ? *info : EngineInfo{};
}

TEST(PublishedConfigs, Ling3TinyHasTheDocumentsNumbers) {
  Json config = CheckpointCopy("ling3-flash").config;
  config.update({{"vocab_size", 157184},
                 {"hidden_size", 1536},
                 {"head_dim", 128},
                 {"intermediate_size", 4608},
                 {"moe_intermediate_size", 512},
                 {"moe_shared_expert_intermediate_size", 512},
                 {"num_hidden_layers", 24},
                 {"layer_group_size", 4},
                 {"num_attention_heads", 16},
                 {"q_lora_rank", 256},
                 {"kv_lora_rank", 512},
                 {"qk_nope_head_dim", 128},
                 {"qk_rope_head_dim", 64},
                 {"v_head_dim", 128},
                 {"num_experts", 128},
                 {"num_experts_per_tok", 8},
                 {"n_group", 8},
                 {"topk_group", 4},
                 {"first_k_dense_replace", 1},
                 {"dtype", "bfloat16"}});
  EngineInfo info = published(config);
  EXPECT_EQ(info.state_bytes_per_token, 6 * 576 * 2);
  // 18 layers of 16 matrices of 128 x 128, and the last 3 inputs of their convolutions, all f32.
  EXPECT_EQ(info.state_bytes_per_sequence, 18 * (16 * 128 * 128 + 3 * 3 * 2048) * 4);
  EXPECT_NEAR(static_cast<double>(info.parameters_total), 7.9e9, 0.05e9);
  EXPECT_NEAR(static_cast<double>(info.parameters_active), 1.1e9, 0.1e9) << "without embedding";
  ASSERT_EQ(info.layers.size(), 24u);
  for (size_t i = 0; i < 24; ++i) {
    EXPECT_EQ(info.layers[i].mixer == "kda", i % 4 != 3) << i;
    EXPECT_EQ(info.layers[i].ffn == "dense", i == 0) << i;
  }
}

}  // namespace
}  // namespace banyan::test::hybrid_test
