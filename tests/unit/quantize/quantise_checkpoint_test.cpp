// Quantised checkpoints compute the same bits as quantisation at load time; and nothing is
// overwritten.
#include "quantize/quantise_checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "weights/convert.h"
#include "weights/random_weights.h"

namespace banyan::test::quantise_checkpoint_test {
namespace {

namespace fs = std::filesystem;

class QuantiseCheckpoint : public testing::Test {
 protected:
  // A golden checkpoint copied with another file beside it, since those are not to be written to.
  void copy_golden(const std::string& golden) {
    CheckpointCopy(golden).save(source_);
    source_.write("tokenizer.json", "{}");
    source_.write("notes.bin", "old weights");
  }
  // A small model of random bf16 numbers.
  void write_random(bool tied) {
    constexpr int64_t kHidden = 160, kKv = 32, kInner = 192, kVocabulary = 64;
    source_.write("config.json", fmt::format(R"({{"architectures": ["LlamaForCausalLM"],
        "vocab_size": 64, "hidden_size": 160, "intermediate_size": 192, "num_hidden_layers": 1,
        "num_attention_heads": 5, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "tie_word_embeddings": {}, "torch_dtype": "bfloat16"}})",
                                             tied));
    std::vector<TestTensor> tensors;
    auto add = [&](const std::string& name, std::vector<int64_t> shape) {
      int64_t count = shape[0] * (shape.size() > 1 ? shape[1] : 1);
      std::vector<float> values(static_cast<size_t>(count));
      random_elements(name, 0, count, shape.size() == 1 ? 1 : 0, values.data());
      std::string bytes(values.size() * 2, '\0');
      convert_elements(values.data(), DType::kF32, bytes.data(), DType::kBF16, count);
      tensors.push_back({name + ".weight", "BF16", std::move(shape), std::move(bytes)});
    };
    add("model.embed_tokens", {kVocabulary, kHidden});
    if (!tied) add("lm_head", {kVocabulary, kHidden});
    add("model.norm", {kHidden});
    std::string layer = "model.layers.0.";
    add(layer + "input_layernorm", {kHidden});
    add(layer + "post_attention_layernorm", {kHidden});
    add(layer + "self_attn.q_proj", {kHidden, kHidden});
    add(layer + "self_attn.k_proj", {kKv, kHidden});
    add(layer + "self_attn.v_proj", {kKv, kHidden});
    add(layer + "self_attn.o_proj", {kHidden, kHidden});
    add(layer + "mlp.gate_proj", {kInner, kHidden});
    add(layer + "mlp.up_proj", {kInner, kHidden});
    add(layer + "mlp.down_proj", {kHidden, kInner});
    source_.write("model.safetensors", safetensors_file(tensors));
  }

  QuantiseOptions options(const std::string& format) {
    return {.folder = source_.path(), .out = out(), .format = format, .threads = &threads_};
  }
  std::string out() const { return source_.path() + "-out"; }
  void TearDown() override { fs::remove_all(out()); }

  static std::vector<float> logits(EngineConfig config) {
    config.threads = 2;
    config.page_size_tokens = 16;
    config.total_tokens_max = 64;
    std::vector<TokenId> tokens(40);
    std::iota(tokens.begin(), tokens.end(), 3);
    return all_logits(*load_runner(config), tokens, 64);
  }
  std::string error_of(const QuantiseOptions& options) {
    auto result = quantise_checkpoint(options);
    return result ? "" : result.error().message;
  }

  TemporaryFolder source_;
  ThreadPool threads_{2};
};

// Rows of 160 and 192: groups of 32, ragged blocks of 128. The golden model's rows of 56 and 100 do
// not divide into groups and become int8.
TEST_F(QuantiseCheckpoint, ComputesTheBitsOfQuantisingWhileLoading) {
  for (const char* model : {"untied", "tied", "qwen3-bf16"}) {
    for (const char* format : {"int8", "int8:64", "int4", "int4:64", "fp8", "mxfp4"}) {
      SCOPED_TRACE(std::string(model) + " to " + format);
      if (model == std::string("qwen3-bf16")) copy_golden(model);
      if (model != std::string("qwen3-bf16")) write_random(model == std::string("tied"));
      auto result = quantise_checkpoint(options(format));
      ASSERT_TRUE(result.has_value()) << result.error().message;
      EXPECT_LT(result->bytes_written, result->bytes_read);
      EXPECT_EQ(logits({.model_path = out()}),
                logits({.model_path = source_.path(), .quantization = format}));
      fs::remove_all(out());
    }
  }
}

TEST_F(QuantiseCheckpoint, CopiesWhatLiesBesideTheWeights) {
  copy_golden("llama-bias");
  ASSERT_TRUE(quantise_checkpoint(options("int8")).has_value());
  EXPECT_TRUE(fs::exists(out() + "/tokenizer.json"));
  EXPECT_FALSE(fs::exists(out() + "/notes.bin"));
}

TEST_F(QuantiseCheckpoint, FollowsOverridesAndWritesShards) {
  copy_golden("llama-bias");
  QuantiseOptions o = options("int8");
  o.overrides = {"layers.0.*(gate|up)_proj=bf16", "lm_head=none", "down_proj=fp8"};
  o.shard_bytes_max = 60'000;
  auto result = quantise_checkpoint(o);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(fs::exists(out() + "/model.safetensors.index.json"));
  EXPECT_EQ(logits({.model_path = out()}), logits({.model_path = source_.path(),
                                                   .quantization = "int8",
                                                   .quantization_overrides = o.overrides}));
  Json config = Json::parse(read_file(out() + "/config.json").value());
  EXPECT_EQ(config["quantization_config"]["format"], "mixed-precision");
  EXPECT_EQ(config["quantization_config"]["config_groups"].size(), 2u);
}

TEST_F(QuantiseCheckpoint, OverwritesNothingAndLeavesNothingAfterAnError) {
  copy_golden("llama-bias");
  fs::create_directory(out());
  ASSERT_TRUE(quantise_checkpoint(options("int8")).has_value());  // an empty folder is fine
  EXPECT_NE(error_of(options("int8")).find("is not empty"), std::string::npos);
  fs::remove_all(out());

  CheckpointCopy broken("llama-bias");
  broken.set("model.layers.1.mlp.up_proj.weight", 5, NAN);
  broken.save(source_);
  EXPECT_NE(error_of(options("int8")).find("up_proj.weight"), std::string::npos);
  EXPECT_FALSE(fs::exists(out()));
  auto parent = fs::path(out()).parent_path();
  for (const auto& entry : fs::directory_iterator(parent)) {
    EXPECT_FALSE(entry.path().string().starts_with(out() + ".partial")) << entry.path();
  }
}

TEST_F(QuantiseCheckpoint, RefusesWhatIsQuantisedAlready) {
  copy_golden("../quantised/gptq");
  EXPECT_NE(error_of(options("int8")).find("has a quantization_config"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::quantise_checkpoint_test
