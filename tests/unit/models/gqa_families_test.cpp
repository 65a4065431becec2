// Families of grouped-query attention: wrong tensors, unsupported settings, stacked experts, and
// messages about refused families.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "banyan/engine.h"
#include "base/threads/thread_pool.h"
#include "models/registry.h"
#include "quantize/quantise_checkpoint.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::gqa_families_test {
namespace {

TEST(GqaFamilies, NameTensorsThatDoNotFit) {
  const std::string experts = "model.layers.0.mlp.experts.";
  expect_refused("gpt-oss", experts + "0.gate_proj.weight [10, 24] is missing",
                 [&](auto& c) { c.erase(experts + "gate_up_proj"); });
  expect_refused("gpt-oss", experts + "gate_up_proj has shape [5, 20, 24]",
                 [&](auto& c) { c.tensor(experts + "gate_up_proj").shape = {5, 20, 24}; });
  expect_refused("gpt-oss", experts + "down_proj_bias has shape [24, 5]",
                 [&](auto& c) { c.tensor(experts + "down_proj_bias").shape = {24, 5}; });
  expect_refused("gpt-oss", experts + "0.down_proj.bias [24] is missing",
                 [&](auto& c) { c.erase(experts + "down_proj_bias"); });
  expect_refused("gpt-oss", "model.layers.1.self_attn.sinks [6] is missing",
                 [](auto& c) { c.erase("model.layers.1.self_attn.sinks"); });
  expect_refused("gpt-oss-mxfp4", experts + "gate_up_proj_blocks has shape [5, 32, 64]",
                 [&](auto& c) { c.tensor(experts + "gate_up_proj_blocks").shape = {5, 32, 64}; });
  expect_refused("gpt-oss-mxfp4", experts + "0.down_proj.weight_scale is missing",
                 [&](auto& c) { c.erase(experts + "down_proj_scales"); });
  expect_refused("gemma3", "model.layers.0.pre_feedforward_layernorm.weight [32] is missing",
                 [](auto& c) { c.erase("model.layers.0.pre_feedforward_layernorm.weight"); });
  expect_refused("minimax-m2", "model.layers.0.self_attn.k_norm.weight has shape [8]", [](auto& c) {
    auto& tensor = c.tensor("model.layers.0.self_attn.k_norm.weight");
    tensor.shape = {8};
    tensor.bytes.resize(8 * 4);
  });
  expect_refused("glm4-moe", "gate.e_score_correction_bias [6] is missing",
                 [](auto& c) { c.erase("model.layers.1.mlp.gate.e_score_correction_bias"); });
  expect_refused("gemma4", "per_layer_input_gate.weight [6, 32] is missing",
                 [](auto& c) { c.erase("model.layers.1.per_layer_input_gate.weight"); });
  expect_refused("gemma4", "model.layers.2.self_attn.k_norm.weight [8] is missing",
                 [](auto& c) { c.erase("model.layers.2.self_attn.k_norm.weight"); });
  expect_refused("gemma4-moe", "model.layers.1.router.per_expert_scale [5] is missing",
                 [](auto& c) { c.erase("model.layers.1.router.per_expert_scale"); });
  expect_refused(
      "gemma4-moe", "model.layers.1.self_attn.v_proj.weight [1] is not used", [](auto& c) {
        c.tensors.push_back({"model.layers.1.self_attn.v_proj.weight", "F32", {1}, "1234"});
      });
  expect_refused("llama4", "feed_forward.experts.gate_up_proj has shape [5, 24, 32]", [](auto& c) {
    c.tensor("model.layers.1.feed_forward.experts.gate_up_proj").shape = {5, 24, 32};
  });
  expect_refused("llama4", "model.layers.1.feed_forward.router.weight [5, 32] is missing",
                 [](auto& c) { c.erase("model.layers.1.feed_forward.router.weight"); });
  expect_refused("mistral4", "model.layers.0.self_attn.kv_a_layernorm.weight [12] is missing",
                 [](auto& c) { c.erase("model.layers.0.self_attn.kv_a_layernorm.weight"); });
  expect_refused("phi3", "qkv_proj.weight [64, 32] is missing",
                 [](auto& c) { c.erase("model.layers.0.self_attn.qkv_proj.weight"); });
}

TEST(GqaFamilies, RefuseConfigsThatAskForSomethingElse) {
  struct Wrong {
    const char* golden;
    const char* key;
    Json value;
  };
  const Wrong kWrong[] = {
      {"gpt-oss", "swiglu_alpha", 1.5},
      {"gpt-oss", "rope_scaling", nullptr},
      {"gpt-oss", "layer_types", {"sliding_attention", "chunked_attention", "full_attention"}},
      {"gemma2", "hidden_activation", "silu"},
      {"gemma3", "use_bidirectional_attention", true},
      {"glm4", "partial_rotary_factor", 0.1},
      {"gemma4", "num_kv_shared_layers", 4},
      {"gemma4", "use_bidirectional_attention", "all"},
      {"gemma4", "vocab_size_per_layer_input", 96},
      {"gemma4-moe", "num_global_key_value_heads", 3},
      {"gemma4-moe", "layer_types", {"full_attention", "sliding_attention"}},
      {"llama4", "num_experts_per_tok", 2},
      {"llama4", "no_rope_layers", {1, 0}},
      {"llama4", "attn_temperature_tuning", "always"},
      {"llama4",
       "layer_types",
       {"chunked_attention", "full_attention", "full_attention", "full_attention"}},
      {"mistral4", "rope_parameters", nullptr},
      {"mistral4", "scoring_func", "sqrtsoftplus"},
      {"minimax-m2", "attn_type_list", {1, 0}},
      {"minimax-m2", "scoring_func", "softmax"},
      {"mixtral", "attention_bias", true},
      {"smollm3", "no_rope_layers", {1, 0}},
      {"phi3", "rope_scaling", {{"type", "longrope"}, {"long_factor", {1.0}}}},
      {"seed-oss", "attention_multiplier", 0.5},
      {"llama2-mha",
       "rope_scaling",
       {{"type", "yarn"},
        {"factor", 2.0},
        {"original_max_position_embeddings", 64},
        {"llama_4_scaling_beta", 0.1}}},
  };
  for (const Wrong& wrong : kWrong) {
    std::string words =
        wrong.key == std::string("rope_scaling") && wrong.golden == std::string("llama2-mha")
            ? "llama_4_scaling_beta"
        : wrong.golden == std::string("phi3") ? "longrope"
                                              : wrong.key;
    expect_refused(wrong.golden, words, [&](auto& c) { c.config[wrong.key] = wrong.value; });
  }
}

TEST(GqaFamilies, KeepTheCodesOfGptOss) {
  auto info = inspect_changed("gpt-oss-mxfp4");
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->layers[0].mixer, "gqa, window 7, sinks");
  EXPECT_EQ(info->layers[1].mixer, "gqa, sinks");
  EXPECT_EQ(info->layers[0].ffn, "moe, 3 of 5");
  int64_t experts = 0;
  for (const WeightSummary& w : info->weights) {
    if (w.names.find("experts") == std::string::npos) continue;
    EXPECT_EQ(w.format, "mxfp4") << w.names;
    EXPECT_TRUE(w.exact) << w.names;
    experts += w.matrices;
  }
  EXPECT_EQ(experts, 2 * 2 * 5) << "gates and ups are one matrix";
}

TEST(GqaFamilies, ShowWhichLayersSeeTheirChunkAlone) {
  auto info = inspect_changed("llama4");
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->layers[0].mixer, "gqa, chunks of 16");
  EXPECT_EQ(info->layers[2].mixer, "gqa, no rotation");
  EXPECT_EQ(info->layers[0].ffn, "dense");
  EXPECT_EQ(info->layers[1].ffn, "moe, 1 of 5, shared 12");
  // As the first configs have it, and as transformers derives it.
  std::vector<float> logits = logits_of("llama4");
  EXPECT_EQ(logits_of("llama4", [](auto& c) { c.config["attn_temperature_tuning"] = 4; }), logits);
  EXPECT_EQ(logits_of("llama4",
                      [](auto& c) {
                        c.config["no_rope_layers"] = Json::array();
                        c.config["no_rope_layer_interval"] = 3;
                        c.config["moe_layers"] = {1, 3};
                        c.config.erase("interleave_moe_layer_step");
                      }),
            logits);
}

TEST(GqaFamilies, MayLookAtKeysOfAnEarlierLayer) {
  auto info = inspect_changed("gemma4");
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->layers[2].mixer, "gqa, window 7");
  EXPECT_EQ(info->layers[3].mixer, "gqa, window 7, keys of an earlier layer");
  EXPECT_EQ(info->layers[4].mixer, "gqa, keys of an earlier layer");
  // Published files have keys of their own for these layers, which nothing reads.
  auto leftover = [](auto& c) {
    c.tensors.push_back({"model.layers.3.self_attn.k_proj.weight", "F32", {1}, "1234"});
  };
  EXPECT_EQ(logits_of("gemma4", leftover), logits_of("gemma4"));
}

TEST(GqaFamilies, AreNotQuantisedInPartWhereExpertsLieInOneTensor) {
  CheckpointCopy copy("gpt-oss");
  TemporaryFolder folder, out;
  copy.save(folder);
  ThreadPool threads(1);
  auto result = quantise_checkpoint(
      {.folder = folder.path(), .out = out.path() + "/new", .format = "int8", .threads = &threads});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("stacked tensor of all experts"), std::string::npos)
      << result.error().message;
}

TEST(GqaFamilies, SayWhyKnownOnesAreRefused) {
  for (const RefusedFamily& refused : refused_families()) {
    auto family = find_family(refused.architecture);
    ASSERT_FALSE(family.has_value()) << refused.architecture << " runs: take it off the list";
    EXPECT_NE(family.error().message.find(refused.why), std::string::npos);
  }
  // Qwen3.8-Flash-Next and GLM-5.3-Flash.
  for (const char* name :
       {"Qwen4ExpForConditionalGeneration", "Glm5NextForConditionalGeneration"}) {
    EXPECT_NE(find_family(name).error().message.find("residual streams"), std::string::npos);
  }
  for (const Family& family : registered_families()) {
    EXPECT_FALSE(family.notes.mixers.empty()) << family.architecture;
    EXPECT_FALSE(family.notes.ffn.empty()) << family.architecture;
    EXPECT_FALSE(family.notes.checkpoints.empty()) << family.architecture;
  }
  EXPECT_TRUE(std::ranges::is_sorted(registered_families(), {}, &Family::architecture));
}

}  // namespace
}  // namespace banyan::test::gqa_families_test
