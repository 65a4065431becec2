// Trained models against an independent forward pass in numpy: the reference_greedy.json in each
// folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::trained_models_test {
namespace {

constexpr double kErrorMax = 1e-3;  // of logits and of logprobs, f32 against f32

class TrainedModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    REQUIRE_SHARED(folder());
    std::string path = shared_path(folder() + "/reference_greedy.json");
    auto text = read_file(path);
    ASSERT_TRUE(text.has_value()) << text.error().message;
    auto reference = parse_json(*text, path, {.keys_per_object_max = 1 << 16});
    ASSERT_TRUE(reference.has_value()) << reference.error().message;
    results_ = reference->at("results");
  }

  std::string folder() const { return std::string("models/") + GetParam(); }
  EngineConfig config() const {
    return {.model_path = shared_path(folder()),
            .dtype = "f32",
            .threads = 2,
            .page_size_tokens = 16,
            .total_tokens_max = 256};
  }

  Json results_;
};

TEST_P(TrainedModels, LogitsMatch) {
  std::unique_ptr<Runner> runner = load_runner(config());
  for (const Json& result : results_) {
    SCOPED_TRACE(result.at("prompt"));
    std::vector<TokenId> prompt = result.at("prompt_token_ids");
    std::vector<float> logits = all_logits(*runner, prompt, 256);
    std::vector<float> expected = result.at("last_logits_all");
    auto last = std::span(logits).last(expected.size());
    for (size_t t = 0; t < expected.size(); ++t) ASSERT_NEAR(last[t], expected[t], kErrorMax) << t;
    for (const Json& entry : result.at("first_step_top5")) {
      EXPECT_NEAR(last[entry.at(0)], entry.at(1).get<double>(), kErrorMax) << entry;
    }
  }
}

TEST_P(TrainedModels, HiddenStatesMatch) {
  std::unique_ptr<Runner> runner = load_runner(config());
  std::vector<int32_t> pages(16);
  std::iota(pages.begin(), pages.end(), 0);
  for (const Json& result : results_) {
    SCOPED_TRACE(result.at("prompt"));
    std::vector<TokenId> prompt = result.at("prompt_token_ids");
    std::vector<std::vector<float>> expected = result.at("last_hidden_prefix8_after_each_layer");
    std::vector<int> layers(runner->info().layers.size() + 1);
    std::iota(layers.begin(), layers.end(), 0);
    auto rows = static_cast<int64_t>(prompt.size());
    Runner::Hidden hidden =
        runner->run_hidden(one_span(runner->classes(), prompt, 0, rows, pages), layers);
    ASSERT_EQ(expected.size(), layers.size());
    for (size_t layer = 0; layer < layers.size(); ++layer) {
      size_t width = hidden.layers[layer].size() / prompt.size();
      auto last = std::span(hidden.layers[layer]).last(width);
      for (size_t i = 0; i < expected[layer].size(); ++i) {
        EXPECT_NEAR(last[i], expected[layer][i], kErrorMax) << "layer " << layer << ", " << i;
      }
    }
  }
}

TEST_P(TrainedModels, TeacherForcedLogprobsMatch) {
  std::unique_ptr<Engine> engine = load_engine(config());
  for (const Json& result : results_) {
    SCOPED_TRACE(result.at("prompt"));
    const Json& expected = result.at("prompt_logprobs");
    Heard heard =
        run_alone(*engine, {.prompt = result.at("prompt_token_ids"),
                            .options = {.max_new_tokens = 0, .prompt_logprobs_begin = 0}});
    ASSERT_EQ(heard.prompt.size() + 1, expected.size());
    for (size_t i = 1; i < expected.size(); ++i) {
      EXPECT_NEAR(heard.prompt[i - 1].logprob, expected.at(i).get<double>(), kErrorMax) << i;
    }
  }
}

TEST_P(TrainedModels, GreedyTokensMatch) {
  std::unique_ptr<Engine> engine = load_engine(config());
  for (const Json& result : results_) {
    SCOPED_TRACE(result.at("prompt"));
    std::vector<TokenId> expected = result.at("greedy_next_64");
    Heard heard =
        run_alone(*engine, {.prompt = result.at("prompt_token_ids"),
                            .sampling = {.temperature = 0},
                            .options = {.max_new_tokens = static_cast<int64_t>(expected.size())}});
    std::vector<TokenId> ids = heard.output_ids();
    // Where two tokens are closer than both their errors, either continuation is right.
    if (result.at("min_top1_top2_margin").get<double>() <= 2 * kErrorMax) {
      size_t sure = result.at("argmin_margin_step");
      ids.resize(sure);
      expected.resize(sure);
    }
    EXPECT_EQ(ids, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TrainedModels, testing::Values("stories260K", "llama2xs-281K"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace banyan::test::trained_models_test
