// Which embeddings a model has, by its files, and those of checkpoints without an output head.
#include "llm/embedding.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/api.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"

namespace banyan::test::embedding_test {
namespace {

constexpr const char* kModules = R"([
  {"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
  {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
  {"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}])";

class PoolingFiles : public testing::Test {
 protected:
  PoolingFiles() { std::filesystem::create_directory(folder_.path() + "/1_Pooling"); }
  EmbeddingConfig read(const std::string& modules, const std::string& pooling = "") {
    folder_.write("modules.json", modules);
    if (!pooling.empty()) folder_.write("1_Pooling/config.json", pooling);
    return read_embedding_config({.model_path = folder_.path()});
  }
  std::string error(const std::string& modules, const std::string& pooling = "") {
    EmbeddingConfig config = read(modules, pooling);
    EXPECT_FALSE(config.intended);
    return config.pooling ? "" : config.pooling.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(PoolingFiles, SayWhichStateIsPooled) {
  EmbeddingConfig none = read_embedding_config({.model_path = folder_.path()});
  EXPECT_EQ(none.pooling, Pooling::kLast);
  EXPECT_FALSE(none.intended);
  EmbeddingConfig last = read(kModules, R"({"word_embedding_dimension":8,
      "pooling_mode_cls_token":false,"pooling_mode_mean_tokens":false,
      "pooling_mode_lasttoken":true,"include_prompt":true})");
  EXPECT_EQ(last.pooling, Pooling::kLast);
  EXPECT_TRUE(last.intended);
  EXPECT_EQ(read(kModules, R"({"pooling_mode_mean_tokens":true})").pooling, Pooling::kMean);
  EXPECT_EQ(read(kModules, R"({"pooling_mode":"mean","pooling_mode_mean_tokens":true})").pooling,
            Pooling::kMean);
}

TEST_F(PoolingFiles, WhatIsNotThereIsNamed) {
  EXPECT_TRUE(error(kModules, R"({"pooling_mode_cls_token":true})").contains("\"cls\""));
  EXPECT_TRUE(error(kModules, R"({"pooling_mode":"mean","include_prompt":false})")
                  .contains("include_prompt"));
  EXPECT_TRUE(error(kModules, R"({"pooling_mode_mean_tokens":true,"pooling_mode_lasttoken":true})")
                  .contains("in 2 ways"));
  EXPECT_TRUE(error(R"([{"path":"2_Dense","type":"sentence_transformers.models.Dense"}])")
                  .contains("sentence_transformers.models.Dense"));
  EXPECT_TRUE(error("{}").contains("not a list"));
  EXPECT_TRUE(error("[").contains("modules.json"));
  EXPECT_TRUE(error(R"([{"path":"../x","type":"a.Pooling"}])").contains("../x"));
  EXPECT_TRUE(error(kModules, "[]").contains("1_Pooling/config.json"));
}

TEST_F(PoolingFiles, AnOptionTakesPrecedence) {
  read(R"([{"path":"2_Dense","type":"sentence_transformers.models.Dense"}])");
  EmbeddingConfig asked = read_embedding_config({.model_path = folder_.path(), .pooling = "mean"});
  EXPECT_EQ(asked.pooling, Pooling::kMean);
}

// The checkpoint as transformers' AutoModel saves it.
CheckpointCopy bare(const std::string& golden) {
  CheckpointCopy copy(golden);
  std::string architecture = copy.config["architectures"][0];
  copy.config["architectures"][0] =
      architecture.substr(0, architecture.find("ForCausalLM")) + "Model";
  std::erase_if(copy.tensors, [](const TestTensor& t) { return t.name == "lm_head.weight"; });
  for (TestTensor& tensor : copy.tensors) tensor.name = tensor.name.substr(6);  // "model."
  return copy;
}

std::vector<float> embedding(Engine& engine) {
  GenerateRequest request{.prompt = {5, 9, 2, 30, 7},
                          .options = {.max_new_tokens = 0, .pooling = Pooling::kLast}};
  return run_alone(engine, request).embedding;
}

TEST(BareCheckpoint, HasTheSameEmbeddings) {
  for (const char* golden : {"qwen3-tied", "llama31-gqa", "mixtral"}) {
    TemporaryFolder folder;
    bare(golden).save(folder);
    auto whole = load_engine({.model_path = golden_folder(golden), .threads = 1});
    auto engine = load_engine({.model_path = folder.path(), .threads = 1});
    std::vector<float> expected = embedding(*whole);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(same_bits(embedding(*engine), expected)) << golden;
    EXPECT_LE(engine->info().weight_bytes, whole->info().weight_bytes);
  }
}

TEST(BareCheckpoint, GeneratesOnlyIfItsHeadIsTheEmbedding) {
  TemporaryFolder tied, untied;
  bare("qwen3-tied").save(tied);
  bare("llama31-gqa").save(untied);
  auto whole = load_engine({.model_path = golden_folder("qwen3-tied"), .threads = 1});
  auto engine = load_engine({.model_path = tied.path(), .threads = 1});
  GenerateRequest request{.prompt = {5, 9, 2}, .options = {.max_new_tokens = 4}};
  EXPECT_TRUE(engine->info().generates);
  expect_same(run_alone(*engine, request), run_alone(*whole, request));
  auto headless = load_engine({.model_path = untied.path(), .threads = 1});
  EXPECT_FALSE(headless->info().generates);
  auto id = headless->submit(request, [](const TokenEvent&) {});
  ASSERT_FALSE(id);
  EXPECT_TRUE(id.error().message.contains("no output head")) << id.error().message;
  request.options = {.max_new_tokens = 0, .prompt_logprobs_begin = 0};
  EXPECT_FALSE(headless->submit(request, [](const TokenEvent&) {})) << "its head is made up";
}

TEST(BareCheckpoint, AHeadThatIsThereIsUsed) {
  TemporaryFolder folder;
  CheckpointCopy copy = bare("llama31-gqa");
  TestTensor head = CheckpointCopy("llama31-gqa").tensor("lm_head.weight");
  copy.tensors.push_back(head);
  copy.save(folder);
  auto whole = load_engine({.model_path = golden_folder("llama31-gqa"), .threads = 1});
  auto engine = load_engine({.model_path = folder.path(), .threads = 1});
  GenerateRequest request{.prompt = {5, 9, 2}, .options = {.max_new_tokens = 4}};
  expect_same(run_alone(*engine, request), run_alone(*whole, request));
}

TEST(BareCheckpoint, OneThatLacksATensorIsRefused) {
  TemporaryFolder folder;
  CheckpointCopy copy = bare("qwen3-tied");
  copy.erase("norm.weight");
  copy.save(folder);
  auto engine = Engine::load({.model_path = folder.path(), .threads = 1});
  ASSERT_FALSE(engine);
  EXPECT_TRUE(engine.error().message.contains("norm.weight")) << engine.error().message;
}

TEST(LlmEmbed, ManyTextsAtOnceAreThoseOfEachAlone) {
  std::unique_ptr<Llm> llm = tiny_llm("", {.queued_max = 4});
  std::vector<TextRequest> texts;
  for (int i = 0; i < 25; ++i) texts.push_back({.text = std::string(1 + i, 'a' + i % 7)});
  auto all = llm->embed(texts, 7).value();
  ASSERT_EQ(all.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(same_bits(llm->embed({texts[i]}, 7).value()[0], all[i])) << i;
    EXPECT_EQ(all[i].size(), 7u);
  }
  texts[20].ids = {1'000'000};
  auto failed = llm->embed(texts);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().message.contains("1000000")) << failed.error().message;
  EXPECT_FALSE(llm->embed({texts[0]}, 33));
  EXPECT_TRUE(llm->embed({}).value().empty());
}

}  // namespace
}  // namespace banyan::test::embedding_test
