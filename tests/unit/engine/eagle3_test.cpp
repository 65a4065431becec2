// EAGLE-3 heads as drafters: they change no output, and a head that does not fit is refused.
#include <gtest/gtest.h>

#include "models/eagle3.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/models/eagle3_head.h"
#include "support/models/grown_checkpoint.h"
#include "support/value_or_abort.h"

namespace banyan::test::eagle3_test {
namespace {

constexpr const char* kModel = "qwen3-moe";

// A model and head of random weights.
EngineConfig drafting(const std::string& model, const std::string& drafter) {
  EngineConfig config{.model_path = golden_folder(model),
                      .load_format = "dummy",
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = 256,
                      .running_max = 4,
                      .chunked_prefill_tokens = 16,
                      .draft_tokens_max = 4,
                      .measure_drafts = false};
  if (drafter.empty()) return config;
  config.drafters = {drafter};
  config.draft_model_path = random_head_folder(model);
  return config;
}

// Samples of prompts that share beginnings: more than fit at once, so that some are retracted.
// Biases leave a few tokens, of which the head mostly draws the right one.
std::vector<GenerateRequest> requests_of(float temperature, uint64_t seed) {
  std::vector<GenerateRequest> requests;
  for (uint32_t i = 0; i < 6; ++i) {
    GenerateRequest request{.prompt = {5, 9, 37, 5, 30, 0, 12, 42, 1, 1, 7, 16, 40, 22},
                            .sampling = {.temperature = temperature, .seed = seed},
                            .options = {.max_new_tokens = 48, .min_new_tokens = 0}};
    request.prompt.resize(request.prompt.size() - i / 2 * 3);
    request.sampling.sample_index = i;
    if (i % 2 == 0) request.sampling.logit_bias = {{3, 30.f}, {8, 30.f}, {11, 30.f}};
    if (i == 1) request.sampling.frequency_penalty = 0.5f;
    if (i == 5) request.options.draft_tokens_max = 1;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Eagle3Drafter, ChangesNothingWhateverTheModel) {
  int64_t accepted = 0, drafted = 0;
  for (const char* model :
       {kModel, "deepseek-v3", "ling3-tiny", "longcat-flash", "gemma3", "gpt-oss", "qwen3-next"}) {
    auto plain = load_engine(drafting(model, ""));
    auto with_head = load_engine(drafting(model, "eagle3"));
    EXPECT_GT(with_head->info().state_bytes_per_token, plain->info().state_bytes_per_token);
    EXPECT_GT(with_head->info().weight_bytes, plain->info().weight_bytes);
    for (float temperature : {0.f, 0.7f, 1.3f}) {
      std::vector<GenerateRequest> requests = requests_of(temperature, 17);
      std::vector<Heard> heard(requests.size());
      for (size_t i = 0; i < requests.size(); ++i) {
        if (i == 3) requests[i].constraint = std::make_shared<Chance>(20, 61);
        ASSERT_TRUE(with_head->submit(requests[i], hear_into(heard[i])).has_value());
      }
      while (with_head->step()) {
      }
      for (size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, temperature {}, request {}", model, temperature, i));
        if (i == 3) requests[i].constraint = std::make_shared<Chance>(20, 61);
        expect_same(heard[i], run_alone(*plain, requests[i]));
      }
    }
    for (const DrafterStats& drafter : with_head->stats().drafters) {
      if (drafter.name != "eagle3") continue;
      accepted += drafter.accepted_tokens;
      drafted += drafter.draft_tokens;
    }
  }
  EXPECT_GT(drafted, 400);
  EXPECT_GT(accepted, 200);
}

// The text of random weights loops, so a golden head over real pages is right now and then.
TEST(Eagle3Drafter, ChangesNothingWithAVocabularyOfItsOwn) {
  for (const char* name : {"eagle3", "eagle3-speculator"}) {
    TemporaryFolder folder;
    save_golden_head(name, folder);
    EngineConfig config = drafting(kModel, "");
    config.load_format = "auto";
    auto plain = load_engine(config);
    config.drafters = {"eagle3"};
    config.draft_model_path = folder.path();
    for (const char* quantization : {"none", "int8"}) {
      config.draft_quantization = quantization;
      auto with_head = load_engine(config);
      for (const GenerateRequest& request : requests_of(0.7f, 5)) {
        expect_same(run_alone(*with_head, request), run_alone(*plain, request));
      }
      EXPECT_GT(with_head->stats().draft_tokens, 20);
    }
  }
}

std::string refusal(const EngineConfig& config) {
  auto engine = Engine::load(config);
  return engine ? "" : engine.error().message;
}

std::string refusal(const ChangeHead& change) {
  TemporaryFolder folder;
  save_golden_head("eagle3", folder, change);
  EngineConfig config = drafting(kModel, "");
  config.load_format = "auto";
  config.drafters = {"eagle3"};
  config.draft_model_path = folder.path();
  return refusal(config);
}

TestTensor& tensor(std::vector<TestTensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &TestTensor::name);
}

TEST(Eagle3Drafter, RefusesHeadsThatDoNotFit) {
  auto expect = [](const std::string& words, const ChangeHead& change) {
    std::string message = refusal(change);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  EXPECT_EQ(refusal([](auto&, auto&) {}), "");
  expect("the head is for hidden states of 48 columns; those of Qwen3MoeForCausalLM have 40",
         [](Json& c, auto&) { c["target_hidden_size"] = 48; });
  expect("the head is for a vocabulary of 98 tokens; that of Qwen3MoeForCausalLM has 97",
         [](Json& c, auto&) { c["vocab_size"] = 98; });
  expect("it reads layers 2, 3, 5 of a model that has 4",
         [](Json& c, auto&) { c["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = {2, 3, 5}; });
  expect("it reads layers 2, 2, 1 of a model that has 4",
         [](Json& c, auto&) { c.erase("eagle_config"); });
  expect("num_hidden_layers = 2", [](Json& c, auto&) { c["num_hidden_layers"] = 2; });
  expect("architecture \"LlamaForCausalLM\" is not an EAGLE-3 head",
         [](Json& c, auto&) { c["architectures"] = {"LlamaForCausalLM"}; });
  expect("midlayer.self_attn.k_proj.weight", [](auto&, auto& tensors) {
    std::erase_if(tensors, [](auto& t) { return t.name == "midlayer.self_attn.k_proj.weight"; });
  });
  expect("d2t is missing", [](auto&, auto& tensors) {
    std::erase_if(tensors, [](auto& t) { return t.name == "d2t"; });
  });
  expect("d2t[3] = ", [](auto&, auto& tensors) { tensor(tensors, "d2t").bytes[24] += 100; });
  expect("d2t is BOOL [97], not I64 [37]", [](auto&, auto& tensors) {
    tensor(tensors, "d2t") = [&] {
      TestTensor t2d = tensor(tensors, "t2d");
      std::erase_if(tensors, [](auto& t) { return t.name == "t2d"; });
      t2d.name = "d2t";
      return t2d;
    }();
  });
  expect("fc_norm.0.weight", [](auto&, auto& tensors) {
    tensors.push_back({"fc_norm.0.weight", "F32", {40}, std::string(160, '\0')});
  });
}

// That of EAGLE3-LLaMA3.1-Instruct-8B, with a model of the sizes of Llama-3.1-8B.
TEST(Eagle3Drafter, ReadsAPublishedConfig) {
  TemporaryFolder model, head;
  model.write("config.json",
              R"({"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096,
                  "intermediate_size": 14336, "max_position_embeddings": 131072,
                  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
                  "rms_norm_eps": 1e-05, "vocab_size": 128256, "tie_word_embeddings": false})");
  head.write("config.json",
             R"({"architectures": ["LlamaForCausalLMEagle3"], "bos_token_id": 128000,
                 "eos_token_id": 128001, "hidden_act": "silu", "hidden_size": 4096,
                 "initializer_range": 0.02, "intermediate_size": 14336,
                 "max_position_embeddings": 2048, "model_type": "llama",
                 "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 1,
                 "pad_token_id": 0, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
                 "torch_dtype": "float16", "transformers_version": "4.28.1", "use_cache": true,
                 "vocab_size": 128256, "draft_vocab_size": 32000})");
  EngineConfig config{.model_path = model.path(), .load_format = "dummy"};
  EngineInfo plain = value_or_abort(inspect_model(config));
  config.drafters = {"eagle3"};
  config.draft_model_path = head.path();
  EngineInfo with_head = value_or_abort(inspect_model(config));
  // fc, the layer's projections and the output head, in bf16; norms in f32.
  int64_t matrices = 4096 * (3 * 4096 + 3 * 14336 + 32000) + 8192 * (4096 + 2 * 1024) + 4096 * 4096;
  int64_t more = with_head.weight_bytes - plain.weight_bytes;
  EXPECT_GE(more, 2 * matrices);
  EXPECT_LT(more, 2 * matrices + (1 << 20));
  EXPECT_EQ(with_head.state_bytes_per_token - plain.state_bytes_per_token, 2 * 2 * 8 * 128);
}

TEST(Eagle3Drafter, IsRefusedWithoutAHeadOrWithAnotherModel) {
  EngineConfig config = drafting(kModel, "eagle3");
  config.drafters = {"eagle3", "draft"};
  EXPECT_NE(refusal(config).find("does not go with \"draft\""), std::string::npos);
  config.drafters = {"eagle3", "mtp"};
  EXPECT_NE(refusal(config).find("does not go with \"mtp\""), std::string::npos);
  config.drafters = {"eagle3"};
  std::swap(config.model_path, config.draft_model_path);
  EXPECT_NE(refusal(config).find("is an EAGLE-3 head, which drafts for a model"),
            std::string::npos);
  config.draft_model_path.clear();
  EXPECT_NE(refusal(config).find("--speculative-draft-model-path"), std::string::npos);
}

TEST(Eagle3Drafter, AHeadIsDescribed) {
  TemporaryFolder folder;
  save_golden_head("eagle3-speculator", folder);
  std::optional<Eagle3Info> head = value_or_abort(inspect_eagle3(folder.path()));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->architecture, "Eagle3Speculator");
  EXPECT_EQ(head->hidden, 32);
  EXPECT_EQ(head->target_hidden, 40);
  EXPECT_EQ(head->vocabulary, 97);
  EXPECT_EQ(head->draft_vocabulary, 37);
  EXPECT_EQ(head->layers, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_TRUE(head->own_embedding);
  EXPECT_EQ(head->weight_bytes, 4 * head->parameters);
  EXPECT_FALSE(value_or_abort(inspect_eagle3(golden_folder(kModel))).has_value());
}

}  // namespace
}  // namespace banyan::test::eagle3_test
