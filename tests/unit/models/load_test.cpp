// Checkpoints that contradict their config.json, and configs with unsupported settings.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "banyan/engine.h"
#include "base/log.h"
#include "support/drive.h"
#include "support/golden.h"
#include "support/models/checkpoint_copy.h"

namespace banyan::test::load_test {
namespace {

// The error of loading a changed golden checkpoint, which must be the same as that of inspecting
// it, since that checks as strictly.
Error load_error(const std::string& golden, const std::function<void(CheckpointCopy&)>& change) {
  CheckpointCopy copy(golden);
  change(copy);
  TemporaryFolder folder;
  copy.save(folder);
  EngineConfig config{.model_path = folder.path(), .threads = 1, .total_tokens_max = 256};
  auto engine = Engine::load(config);
  auto info = inspect_model(config);
  EXPECT_EQ(engine.has_value(), info.has_value());
  if (engine || info) return {.code = ErrorCode::kCancelled, .message = "it loads"};
  EXPECT_EQ(engine.error().message, info.error().message);
  return engine.error();
}

void expect_error(const Error& error, ErrorCode code, const std::string& words) {
  EXPECT_EQ(error.code, code) << error.message;
  EXPECT_NE(error.message.find(words), std::string::npos)
      << error.message << "\n  does not say: " << words;
}

TEST(LoadCheckpoint, NamesTensorsThatDoNotFit) {
  auto corrupt = ErrorCode::kCorrupt;
  const std::string q = "model.layers.1.self_attn.q_proj.weight";
  auto error = [](auto change) { return load_error("llama2-mha", change); };
  expect_error(error([](auto& c) { c.tensors.push_back({"extra", "F32", {1}, "1234"}); }), corrupt,
               "extra [1] is not used by this architecture");
  expect_error(error([&](auto& c) { c.erase(q); }), corrupt, q + " [48, 48] is missing");
  expect_error(error([&](auto& c) { c.tensor(q).shape = {24, 96}; }), corrupt,
               q + " has shape [24, 96] where [48, 48] is expected");
  expect_error(error([&](auto& c) { c.tensor(q).shape = {48 * 48}; }), corrupt,
               q + " has shape [2304]");
  expect_error(error([&](auto& c) {
                 c.tensor(q).dtype = "I64";
                 c.tensor(q).bytes.resize(48 * 48 * 8);
               }),
               corrupt, q + " has dtype I64 where F32, BF16 or F16 is expected");
  expect_error(error([](auto& c) { c.erase("model.norm.weight"); }), corrupt,
               "model.norm.weight [48] is missing");
  expect_error(error([](auto& c) { c.erase("model.embed_tokens.weight"); }), corrupt,
               "model.embed_tokens.weight [97, 48] is missing");
}

TEST(LoadCheckpoint, ReportsAllProblemsTogether) {
  Error error = load_error("llama2-mha", [](auto& c) {
    c.erase("model.layers.0.mlp.up_proj.weight");
    c.erase("model.layers.1.input_layernorm.weight");
    c.tensors.push_back({"model.layers.2.mlp.up_proj.weight", "F32", {1}, "1234"});
  });
  for (const char* name : {"layers.0.mlp.up_proj", "layers.1.input_layernorm", "layers.2.mlp"}) {
    expect_error(error, ErrorCode::kCorrupt, name);
  }
}

TEST(LoadCheckpoint, TiesTheHeadAsTheConfigAndTheTensorsSay) {
  auto copy_head = [](CheckpointCopy& c) {
    TestTensor head = c.tensor("model.embed_tokens.weight");
    head.name = "lm_head.weight";
    c.tensors.push_back(head);
  };
  auto own_head = [&](CheckpointCopy& c) {
    copy_head(c);
    c.set("lm_head.weight", 7, 5.f);
  };
  std::vector<float> tied = logits_of("qwen3-tied", [](auto&) {});
  EXPECT_EQ(logits_of("qwen3-tied", [](auto& c) { c.config.erase("tie_word_embeddings"); }), tied)
      << "without the key, a checkpoint without a head is tied";
  EXPECT_EQ(logits_of("qwen3-tied", copy_head), tied) << "a copy of the embedding changes nothing";

  std::vector<float> own = logits_of("qwen3-tied", own_head);
  EXPECT_NE(own, tied) << "a head of its own is used";
  for (Json value : {Json(false), Json(nullptr)}) {
    EXPECT_EQ(logits_of("qwen3-tied",
                        [&](auto& c) {
                          own_head(c);
                          c.config["tie_word_embeddings"] = value;
                        }),
              own);
  }
  expect_error(load_error("qwen3-tied", [](auto& c) { c.config["tie_word_embeddings"] = false; }),
               ErrorCode::kCorrupt, "lm_head.weight [131, 48] is missing");
}

// As transformers, which saves the one matrix under either name.
TEST(LoadCheckpoint, TakesATiedMatrixThatIsStoredAsTheHeadAlone) {
  auto as_head = [](CheckpointCopy& c) { c.rename("model.embed_tokens.weight", "lm_head.weight"); };
  EXPECT_EQ(logits_of("qwen3-tied", as_head), logits_of("qwen3-tied"));
  for (Json value : {Json(false), Json(nullptr)}) {
    Error error = load_error("qwen3-tied", [&](auto& c) {
      as_head(c);
      c.config["tie_word_embeddings"] = value;
    });
    expect_error(error, ErrorCode::kCorrupt, "model.embed_tokens.weight [131, 48] is missing");
  }
}

TEST(LoadConfig, RefusesUnsupportedValuesByName) {
  auto refuses = [](const std::string& golden, const char* key, const Json& value,
                    const std::string& words) {
    Error error = load_error(golden, [&](auto& c) { c.config[key] = value; });
    EXPECT_TRUE(error.code == ErrorCode::kUnsupported || error.code == ErrorCode::kCorrupt);
    EXPECT_NE(error.message.find("config.json"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(words), std::string::npos)
        << error.message << "\n  does not say: " << words;
  };
  refuses("llama2-mha", "hidden_act", "gelu", "hidden_act = \"gelu\"");
  refuses("llama2-mha", "rope_scaling", {{"rope_type", "longrope"}}, "rope type \"longrope\"");
  refuses("llama2-mha", "rope_scaling", {{"rope_type", "linear"}, {"factor", -1}}, "factor");
  refuses("llama2-mha", "quantization_config", {{"quant_method", "quip"}}, "quant_method \"quip\"");
  refuses("llama2-mha", "num_attention_heads", 5, "multiple of num_attention_heads 5");
  refuses("llama2-mha", "num_key_value_heads", 3, "num_key_value_heads 3");
  refuses("llama2-mha", "head_dim", 7, "head_dim 7 is odd");
  refuses("llama2-mha", "head_dim", 0, "head_dim = 0");
  refuses("llama2-mha", "vocab_size", 0, "vocab_size = 0");
  refuses("llama2-mha", "vocab_size", "many", "vocab_size = \"many\"");
  refuses("llama2-mha", "hidden_size", 1e30, "hidden_size");
  refuses("llama2-mha", "num_hidden_layers", 1000000000, "num_hidden_layers = 1000000000");
  refuses("llama2-mha", "num_hidden_layers", nullptr, "num_hidden_layers");
  refuses("llama2-mha", "rms_norm_eps", -1, "rms_norm_eps");
  refuses("llama2-mha", "final_logit_softcapping", 30, "final_logit_softcapping");
  refuses("llama2-mha", "partial_rotary_factor", 0.5, "partial_rotary_factor = 0.5");
  refuses("llama2-mha", "torch_dtype", "float8", "torch_dtype = \"float8\"");
  refuses("mistral-window", "attention_bias", true, "attention_bias = true");
  refuses("mistral-window", "sliding_window", 0, "sliding_window = 0");
  refuses("qwen2-tied", "layer_types", {"full_attention", "sliding_attention"},
          "sliding_attention, but use_sliding_window is false");
  refuses("qwen2-tied", "layer_types", {"full_attention"}, "1 entries for 2 layers");
  refuses("qwen2-tied", "layer_types", {"full_attention", "mamba"}, "\"mamba\"");
  refuses("qwen2-tied", "use_mrope", true, "use_mrope = true");
  refuses("qwen3-tied", "mlp_bias", true, "mlp_bias = true");
}

TEST(LoadConfig, ListsTheArchitecturesThatThereAre) {
  Error error = load_error("llama2-mha", [](auto& c) { c.config["architectures"] = {"GPT2LM"}; });
  expect_error(error, ErrorCode::kUnsupported, "\"GPT2LM\" is not supported");
  for (const char* name :
       {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    expect_error(error, ErrorCode::kUnsupported, name);
  }
  for (Json none : {Json(nullptr), Json::array(), Json("LlamaForCausalLM"), Json({1})}) {
    load_error("llama2-mha", [&](auto& c) { c.config["architectures"] = none; });
  }
}

// What the log says while a checkpoint is inspected.
std::string log_of(const std::string& folder) {
  std::ostringstream text;
  auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text)));
  auto info = inspect_model({.model_path = folder});
  spdlog::set_default_logger(before);
  EXPECT_TRUE(info.has_value());
  return text.str();
}

TEST(LoadConfig, WarnsOfUnknownKeysOnceAndOfNothingElse) {
  for (const GoldenCase& golden : golden_cases()) EXPECT_EQ(log_of(golden.folder()), "") << golden;
  CheckpointCopy copy("llama31-gqa");
  copy.config["brand_new"] = 1;
  TemporaryFolder folder;
  copy.save(folder);
  std::string log = log_of(folder.path());
  size_t first = log.find("brand_new");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("brand_new", first + 1), std::string::npos) << log;
}

TEST(LoadDummy, NeedsOnlyTheConfigAndIsTheSameEveryTime) {
  CheckpointCopy copy("qwen3-tied");
  TemporaryFolder folder;
  folder.write("config.json", copy.config.dump());
  EngineConfig config{.model_path = folder.path(), .load_format = "dummy", .total_tokens_max = 256};
  std::vector<TokenId> tokens = {1, 2, 3, 50};
  config.threads = 1;
  std::vector<float> first = all_logits(*load_runner(config), tokens, 64);
  config.threads = 3;
  EXPECT_TRUE(same_bits(all_logits(*load_runner(config), tokens, 64), first));
  EXPECT_TRUE(std::ranges::all_of(first, [](float x) { return std::isfinite(x) && x != 0; }));
}

// A config.json alone can ask for any amount of memory.
TEST(LoadDummy, RefusesWeightsBeyondTheMachinesMemory) {
  CheckpointCopy copy("llama2-mha");
  copy.config["hidden_size"] = 1 << 20;
  copy.config["intermediate_size"] = 1 << 20;
  copy.config["vocab_size"] = 1 << 24;
  copy.config["num_hidden_layers"] = 1000;
  copy.config["num_attention_heads"] = 4096;
  TemporaryFolder folder;
  folder.write("config.json", copy.config.dump());
  EngineConfig config{.model_path = folder.path(), .load_format = "dummy", .threads = 1};
  auto engine = Engine::load(config);
  ASSERT_FALSE(engine.has_value());
  expect_error(engine.error(), ErrorCode::kExhausted, "the weights take ");
  auto info = inspect_model(config);
  EXPECT_TRUE(info || info.error().code == ErrorCode::kExhausted);
}

}  // namespace
}  // namespace banyan::test::load_test
