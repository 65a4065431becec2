// A GGUF file as llama.cpp's converter writes it computes the same as the checkpoint that it was
// made from (tools/make_gguf_recipes.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "banyan/engine.h"
#include "banyan/llm.h"
#include "support/drive.h"
#include "support/gguf_file.h"
#include "support/shared.h"
#include "support/value_or_abort.h"

namespace banyan::test::gguf_models_test {
namespace {

// Longer than windows, and than what an index chooses.
const std::vector<TokenId> kPrompt = {1,  2,  3,  50, 7,  8,  9,  10, 11, 60, 4,  5,  30, 31,
                                      32, 33, 12, 70, 13, 71, 14, 72, 15, 73, 16, 74, 17, 75,
                                      18, 76, 19, 77, 20, 78, 21, 79, 22, 80, 23, 81};

std::vector<float> logits_at(const std::string& path, const char* dtype = "f32") {
  auto runner =
      load_runner({.model_path = path, .dtype = dtype, .threads = 1, .total_tokens_max = 256});
  return all_logits(*runner, kPrompt, 64);
}

class GgufModels : public testing::TestWithParam<std::string> {};

TEST_P(GgufModels, ComputeWhatTheirCheckpointsDo) {
  GgufGolden golden = gguf_golden(GetParam());
  TemporaryFolder folder;
  std::string file = folder.write("model.gguf", gguf_file(golden.pairs, golden.tensors));
  golden.original.save(folder);
  std::vector<float> expected = logits_at(folder.path()), ours = logits_at(file);
  // The converter adds one to some norm weights and takes exponentials of rates, which rounds them.
  if (!golden.rounded) {
    EXPECT_TRUE(same_bits(ours, expected));
    return;
  }
  ASSERT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], expected[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Architectures, GgufModels, testing::ValuesIn(gguf_golden_names()),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Of every kind of matrix that has whole blocks: experts with gate and up in one among them.
TEST(GgufBlocks, AreWhatTheyStandForAndStayPacked) {
  for (const char* name : {"gemma4", "gemma4-moe", "mistral4", "granite-moe"}) {
    GgufGolden golden = gguf_golden(name);
    std::vector<TestTensor> packed;
    for (TestTensor& tensor : golden.tensors) packed.push_back(in_q8_0(tensor));
    TemporaryFolder folder;
    std::string file = folder.write("q8_0.gguf", gguf_file(golden.pairs, packed));
    std::string plain = folder.write("f32.gguf", gguf_file(golden.pairs, golden.tensors));
    std::vector<float> expected = logits_at(plain);
    EXPECT_TRUE(same_bits(logits_at(file), expected)) << name;

    auto info = inspect_model({.model_path = file, .threads = 1, .total_tokens_max = 256});
    ASSERT_TRUE(info.has_value()) << info.error().message;
    auto blocks = std::ranges::count_if(
        info->weights, [](const WeightSummary& w) { return w.stored == "gguf q8_0"; });
    EXPECT_GT(blocks, 0) << name;
  }
}

// Of the file and of the checkpoint that it was made from.
void expect_same_logits(const GgufGolden& golden) {
  TemporaryFolder folder;
  std::string file = folder.write("model.gguf", gguf_file(golden.pairs, golden.tensors));
  golden.original.save(folder);
  EXPECT_TRUE(same_bits(logits_at(file), logits_at(folder.path())));
}

// llama.cpp's converter leaves it out, and files that state it are computed with it.
TEST(GgufMetadata, MayStateTheScaleOfMistral4sQueries) {
  GgufGolden golden = gguf_golden("mistral4");
  constexpr double kBeta = 0.6;
  golden.pairs["mistral4.attention.temperature_scale"] = kBeta;
  golden.original.config["rope_parameters"]["llama_4_scaling_beta"] = kBeta;
  expect_same_logits(golden);
}

// Of Granite 4's without Mamba: sizes of what it lacks, and the width of its blocks as that of a
// shared expert.
TEST(GgufMetadata, OfGraniteMayDescribeMamba) {
  GgufGolden golden = gguf_golden("granite");
  Json width = golden.pairs["granite.feed_forward_length"];
  golden.pairs.update({{"granite.ssm.conv_kernel", 4},
                       {"granite.ssm.state_size", 128},
                       {"granite.ssm.group_count", 1},
                       {"granite.ssm.time_step_rank", 8},
                       {"granite.ssm.inner_size", 64},
                       {"granite.expert_count", 0},
                       {"granite.expert_used_count", 0},
                       {"granite.expert_shared_feed_forward_length", width},
                       {"granite.feed_forward_length", 7}});
  expect_same_logits(golden);
}

// llama-gguf-split puts the metadata into the first file.
TEST(GgufSplits, AreOneModel) {
  GgufGolden golden = gguf_golden("qwen2-tied");
  TemporaryFolder folder;
  std::string whole = folder.write("whole.gguf", gguf_file(golden.pairs, golden.tensors));
  auto half = golden.tensors.begin() + std::ssize(golden.tensors) / 2;
  auto total = static_cast<int64_t>(golden.tensors.size());
  auto split = [&](int64_t number) {
    return Json{{"split.no", number}, {"split.count", 2}, {"split.tensors.count", total}};
  };
  Json pairs = golden.pairs;
  pairs.update(split(0));
  std::string first =
      folder.write("m-00001-of-00002.gguf", gguf_file(pairs, {golden.tensors.begin(), half}));
  auto error_of = [](const std::string& path) {
    auto info = inspect_model({.model_path = path, .threads = 1, .total_tokens_max = 256});
    return info ? std::string() : info.error().message;
  };
  EXPECT_NE(error_of(first).find("m-00002-of-00002.gguf: no such file"), std::string::npos);
  std::string second =
      folder.write("m-00002-of-00002.gguf", gguf_file(split(1), {half, golden.tensors.end()}));
  EXPECT_TRUE(same_bits(logits_at(first), logits_at(whole)));
  EXPECT_NE(error_of(second).find("file 2 of 2; give the first"), std::string::npos)
      << error_of(second);
  std::string other = folder.write("other.gguf", gguf_file(pairs, {golden.tensors.begin(), half}));
  EXPECT_NE(error_of(other).find("rename it so that it ends in"), std::string::npos)
      << error_of(other);
}

// Text in, text out.
TEST(GgufModel, HasItsTokenizerAndTemplate) {
  GgufGolden golden = gguf_golden_with_tokenizer();
  golden.pairs["tokenizer.chat_template"] = "{{ messages[0].content }}";
  golden.pairs["general.sampling.temp"] = 0.25;
  TemporaryFolder folder;
  std::string file = folder.write("model.gguf", gguf_file(golden.pairs, golden.tensors));
  auto llm = value_or_abort(Llm::load({.model_path = file, .threads = 1, .total_tokens_max = 256}));
  EXPECT_TRUE(llm->has_tokenizer());
  EXPECT_EQ(value_or_abort(llm->encode("aab<|im_end|>")), (std::vector<TokenId>{0, 2, 3}));
  EXPECT_EQ(llm->recommended_sampling().temperature, 0.25F);
}

// The golden file is refused after `change`, with `words`.
void expect_refused(const GgufGolden& golden, const std::function<void(Json&)>& change,
                    const std::string& words) {
  Json pairs = golden.pairs;
  change(pairs);
  TemporaryFolder folder;
  std::string file = folder.write("model.gguf", gguf_file(pairs, golden.tensors));
  auto info = inspect_model({.model_path = file, .threads = 1, .total_tokens_max = 256});
  ASSERT_FALSE(info.has_value()) << words;
  EXPECT_NE(info.error().message.find(words), std::string::npos) << info.error().message;
}

// Refused, with the key and its value.
TEST(GgufMetadata, IsCheckedAsStrictlyAsAConfig) {
  GgufGolden golden = gguf_golden("qwen2-tied");
  auto expect_error = [&](const std::function<void(Json&)>& change, const std::string& words) {
    expect_refused(golden, change, words);
  };
  expect_error([](Json& p) { p.erase("qwen2.block_count"); }, "qwen2.block_count is missing");
  expect_error([](Json& p) { p["qwen2.block_count"] = -3; }, "qwen2.block_count is -3");
  expect_error([](Json& p) { p["qwen2.block_count"] = 1 << 20; }, "1048576 layers, 0 of them");
  expect_error([](Json& p) { p["qwen2.nextn_predict_layers"] = -1; }, "-1 of them for prediction");
  expect_error([](Json& p) { p["qwen2.context_length"] = "x"; },
               "\"qwen2.context_length\" is string, not an integer");
  expect_error([](Json& p) { p["qwen2.expert_count"] = 4; },
               "qwen2.expert_count is 4, and qwen2 with experts is not supported");
  expect_error([](Json& p) { p["qwen2.feed_forward_length"] = {1, 2}; },
               "qwen2.feed_forward_length differs between layers");
  expect_error([](Json& p) { p["qwen2.rope.scaling.type"] = "spiral"; }, "\"spiral\"");
  expect_error([](Json& p) { p["qwen2.attention.head_count_kv"] = INT64_MIN; },
               "qwen2.attention.head_count_kv is -9223372036854775808; the limit is 2147483648");
  expect_error([](Json& p) { p["qwen2.attention.value_length"] = 9; },
               "qwen2.attention.value_length is 9 and key_length 8");
  expect_error([](Json& p) { p["qwen2.attention.head_count_kv"] = {2, 0}; },
               "qwen2.attention.head_count_kv is 0 in some of 2 layers");
  expect_error(
      [](Json& p) {
        p["qwen2.rope.scaling.type"] = "yarn";
        p["qwen2.rope.scaling.yarn_ext_factor"] = 0.5;
      },
      "qwen2.rope.scaling.yarn_ext_factor is 0.5; supported: 1");
  for (const char* key : {"embedding_length", "attention.head_count", "context_length",
                          "attention.layer_norm_rms_epsilon"}) {
    std::string name = fmt::format("qwen2.{}", key);
    expect_error([&](Json& p) { p.erase(name); }, name + " is missing");
  }
  expect_error([](Json& p) { p["general.architecture"] = "mamba"; },
               "general.architecture \"mamba\" is not supported; supported: bailingmoe2, ");
}

TEST(GgufMetadata, OfGemma4MustFitItsLayers) {
  GgufGolden golden = gguf_golden("gemma4");
  auto missing = [&](const std::string& key, const std::string& words) {
    expect_refused(golden, [&](Json& p) { p.erase("gemma4." + key); }, "gemma4." + key + words);
  };
  auto wrong = [&](const std::string& key, const Json& value, const std::string& words) {
    expect_refused(golden, [&](Json& p) { p["gemma4." + key] = value; }, words);
  };
  missing("attention.key_length", " is missing");
  missing("attention.key_length_swa", " is missing");
  missing("attention.sliding_window", " is missing");
  missing("attention.sliding_window_pattern", " has 0 entries for 5 layers");
  missing("feed_forward_length", " has 0 entries for 5 layers");
  wrong("attention.value_length_swa", 7,
        "gemma4.attention.key_length_swa is 8, value_length_swa 7");
  wrong("rope.dimension_count", 6, "gemma4.rope.dimension_count 6");
  wrong("attention.head_count_kv", {2, 2, 1, 2, 2}, "head_count_kv differs between layers of one");
  wrong("attention.head_count_kv", {2, 1, 2, 2, 1},
        "is 1 in full-attention layers and 2 in others");
  wrong("feed_forward_length", {20, 20, 40, 40, 40},
        "feed_forward_length is 40 in layer 2, where only 20 is supported");
  wrong("attention.shared_kv_layers", 9, "feed_forward_length is 20 in layer 0");
  wrong("rope.scaling.factor", 2.0, "gemma4.rope.scaling.factor is 2, which");
  wrong("expert_count", 4, "no num_experts_per_tok");

  auto rotation = [&](const std::vector<float>& divisors, const std::string& words) {
    GgufGolden other = golden;
    std::erase_if(other.tensors, [](const auto& t) { return t.name == "rope_freqs.weight"; });
    TestTensor tensor{"rope_freqs.weight", "F32", {std::ssize(divisors)}, {}};
    tensor.bytes.assign(reinterpret_cast<const char*>(divisors.data()), divisors.size() * 4);
    if (!divisors.empty()) other.tensors.push_back(tensor);
    expect_refused(other, [](Json&) {}, words);
  };
  rotation({}, "rope_freqs.weight is missing; supported: 6 numbers, 1 and then 1e30");
  rotation({1, 1, 1e30F}, "rope_freqs.weight is another rotation");
  rotation({1, 1, 8, 8, 1e30F, 1e30F}, "rope_freqs.weight is another rotation");
}

TEST(GgufMetadata, OfChosenExpertsAndKeysIsChecked) {
  auto wrong = [](const char* name, const std::string& key, const Json& value,
                  const std::string& words) {
    expect_refused(gguf_golden(name), [&](Json& p) { p[key] = value; }, words);
  };
  wrong("mistral4", "mistral4.expert_gating_func", 2,
        "expert_gating_func is 2; supported: 1 (softmax)");
  wrong("mistral4", "mistral4.attention.kv_lora_rank", 0, "kv_lora_rank");
  wrong("minimax-m3", "minimax-m3.expert_gating_func", 1,
        "expert_gating_func is 1; supported: 2 (sigmoid)");
  wrong("minimax-m3", "minimax-m3.expert_weights_norm", false, "expert_weights_norm is false");
  wrong("deepseek-v2", "deepseek2.expert_gating_func", 3,
        "expert_gating_func is 3; supported: 2 (sigmoid)");
  wrong("deepseek-v2", "deepseek2.expert_weights_norm", true, "norm_topk_prob = true");
  wrong("deepseek-v32", "deepseek32.expert_gating_func", 1,
        "expert_gating_func is 1; supported: 2 (sigmoid)");
  wrong("deepseek-v32", "deepseek32.attention.indexer.top_k", 0, "indexer.top_k is 0");
  wrong("glm-moe-dsa", "glm-dsa.attention.indexer.types", {true, false},
        "attention.indexer.types has 2 entries for 4 layers");
  wrong("glm-moe-dsa", "glm-dsa.attention.indexer.types", {false, true, true, false},
        "the first layer has no index to share");
  wrong("minimax-m3", "minimax-m3.attention.indexer.block_size", 0, "indexer.block_size is 0");
}

}  // namespace
}  // namespace banyan::test::gguf_models_test
