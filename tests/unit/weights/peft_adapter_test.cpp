// Folders of PEFT adapters: what their config says about scaling, and what is refused by name.
#include "weights/files/peft_adapter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/models/adapters.h"

namespace banyan::test::peft_adapter_test {
namespace {

std::string refusal(const std::string& config) {
  auto parsed = PeftConfig::parse(config, "f");
  return parsed ? "" : parsed.error().message;
}

TEST(PeftConfig, ScalesByAlphaOverRank) {
  auto config = PeftConfig::parse(R"({
    "peft_type": "LORA", "r": 8, "lora_alpha": 12,
    "rank_pattern": {"k_proj": 4, "layers\\.1\\..*_proj": 2},
    "alpha_pattern": {"model.layers.0.mlp.up_proj": 16}})",
                                  "f");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->rank("model.layers.0.self_attn.q_proj"), 8);
  EXPECT_EQ(config->scaling("model.layers.0.self_attn.q_proj"), 1.5);
  EXPECT_EQ(config->scaling("model.layers.0.self_attn.k_proj"), 3);
  EXPECT_EQ(config->rank("model.layers.0.self_attn.bk_proj"), 8) << "a name ends in the middle";
  EXPECT_EQ(config->rank("model.layers.1.mlp.up_proj"), 2);
  EXPECT_EQ(config->rank("model.layers.1.mlp.up_proj.x"), 8);
  EXPECT_EQ(config->scaling("model.layers.0.mlp.up_proj"), 2);
  auto stabilised =
      PeftConfig::parse(R"({"peft_type":"LORA","r":16,"lora_alpha":8,"use_rslora":true})", "f");
  ASSERT_TRUE(stabilised);
  EXPECT_EQ(stabilised->scaling("x"), 2);
  auto defaults = PeftConfig::parse(R"({"peft_type":"LORA"})", "f");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->scaling("x"), 1);
}

TEST(PeftConfig, RefusesWhatWouldChangeTheComputation) {
  EXPECT_EQ(refusal(R"({"peft_type":"LORA","use_dora":true})"),
            "f: use_dora is true, which is not supported");
  EXPECT_EQ(refusal(R"({"peft_type":"LORA","modules_to_save":["lm_head"]})"),
            "f: modules_to_save is [\"lm_head\"], which is not supported");
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","bias":"all"})").contains("bias"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","init_lora_weights":"pissa"})").contains("pissa"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","target_parameters":["x"]})").contains("target_par"));
  EXPECT_EQ(refusal(R"({"peft_type":"IA3"})"), "f: peft_type is \"IA3\"; supported: LORA");
  EXPECT_TRUE(refusal(R"({"r":8})").contains("peft_type"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","r":0})").contains("r = 0 is not"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","r":100000})").contains("r = 100000 is not"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","lora_alpha":"x"})").contains("lora_alpha"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","rank_pattern":{"(":1}})").contains("invalid regex"));
  EXPECT_TRUE(refusal(R"({"peft_type":"LORA","rank_pattern":{"a":0}})").contains("rank_pattern"));
  EXPECT_FALSE(refusal("[]").empty());
  EXPECT_FALSE(refusal("{").empty());
  EXPECT_EQ(refusal(R"({"peft_type":"LORA","use_dora":false,"modules_to_save":null,"bias":"none",
                        "init_lora_weights":true,"target_modules":"all-linear"})"),
            "");
}

class PeftFolders : public testing::Test {
 protected:
  // The message about the changed adapter, without the folder.
  static std::string refused(const std::function<void(TestAdapter&)>& change) {
    TestAdapter adapter("qwen3-tied");
    change(adapter);
    TemporaryFolder folder;
    auto opened = PeftAdapter::open(adapter.save(folder));
    return opened ? "" : opened.error().message.substr(folder.path().size() + 1);
  }
  static constexpr const char* kQ = "model.layers.0.self_attn.q_proj";
};

TEST_F(PeftFolders, ListModules) {
  TemporaryFolder folder;
  auto adapter = PeftAdapter::open(TestAdapter("qwen3-tied").save(folder));
  ASSERT_TRUE(adapter);
  EXPECT_EQ(adapter->modules().size(), 12u);
  EXPECT_EQ(adapter->modules()[0].name, "model.layers.0.mlp.down_proj");
  EXPECT_EQ(adapter->modules()[0].scaling, 1.5);
  EXPECT_EQ(adapter->modules()[0].rank(), 4);
  EXPECT_EQ(adapter->rank_max(), 4);
}

TEST_F(PeftFolders, WithOtherTensorsAreRefusedByName) {
  auto renamed = [&](const std::string& to) {
    return refused([&](TestAdapter& a) { a.tensor(kQ + std::string(".lora_B.weight")).name = to; });
  };
  std::string file = "adapter_model.safetensors: ";
  EXPECT_EQ(renamed("base_model.model.x.lora_magnitude_vector"),
            file + "base_model.model.x.lora_magnitude_vector: DoRA is not supported");
  EXPECT_EQ(renamed("base_model.model.model.embed_tokens.lora_embedding_A"),
            file +
                "base_model.model.model.embed_tokens.lora_embedding_A: embeddings take no "
                "adapter");
  EXPECT_TRUE(renamed("base_model.model.x.lora_B.bias").contains("biases"));
  EXPECT_TRUE(renamed("base_model.model.lm_head.weight").contains("modules_to_save"));
  EXPECT_TRUE(renamed("x.lora_B.weight").contains("x.lora_B.weight: it is neither"));
  EXPECT_TRUE(renamed("base_model.model.lora_B.weight").contains("it is neither"));
  EXPECT_TRUE(renamed("base_model.model.x.lora_B.weight").contains("has no lora_"));
}

TEST_F(PeftFolders, WithOtherShapesOrTypesAreRefused) {
  auto changed = [&](const char* name, const std::function<void(TestTensor&)>& change) {
    return refused([&](TestAdapter& a) { change(a.tensor(kQ + std::string(name))); });
  };
  std::string tensor = std::string("adapter_model.safetensors: base_model.model.") + kQ;
  EXPECT_EQ(changed(".lora_A.weight",
                    [](TestTensor& t) {
                      t.shape[0] -= 1;
                      t.bytes.resize(t.bytes.size() / 4 * 3);
                    }),
            tensor + ".lora_A.weight has shape [3, 48], but the config says that its rank is 4");
  EXPECT_EQ(changed(".lora_B.weight", [](TestTensor& t) { t.shape = {4, 144}; }),
            tensor + ".lora_B.weight has shape [4, 144], but the config says that its rank is 4");
  EXPECT_EQ(changed(".lora_A.weight", [](TestTensor& t) { t.dtype = "I32"; }),
            tensor + ".lora_A.weight has dtype I32 where F32, BF16 or F16 is expected");
  EXPECT_EQ(changed(".lora_A.weight", [](TestTensor& t) { t.shape = {4 * 48}; }),
            tensor + ".lora_A.weight has shape [192], but the config says that its rank is 4");
}

TEST_F(PeftFolders, ThatLackAFileAreRefused) {
  TemporaryFolder folder;
  EXPECT_TRUE(PeftAdapter::open(folder.path()).error().message.contains("adapter_config.json: no"));
  folder.write("adapter_config.json", R"({"peft_type":"LORA"})");
  EXPECT_TRUE(PeftAdapter::open(folder.path()).error().message.contains("safetensors only"));
  folder.write("adapter_model.safetensors", "damaged");
  EXPECT_EQ(PeftAdapter::open(folder.path()).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(refused([](TestAdapter& a) { a.tensors.clear(); }).contains("it has no tensors"));
}

}  // namespace
}  // namespace banyan::test::peft_adapter_test
