// Every golden checkpoint against what transformers computes from it.
//
// Errors are the largest absolute difference over the reference's largest absolute value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/file.h"
#include "kernels/select.h"
#include "support/drive.h"
#include "support/golden.h"

namespace banyan::test::models_test {
namespace {

// f32 against f32: orders of addition differ, and exponentials by an ULP or two.
constexpr double kErrorMaxF32 = 1e-4;
constexpr double kLogprobErrorMaxF32 = 1e-3;

double largest(std::span<const float> values) {
  float most = 0;
  for (float value : values) most = std::max(most, std::abs(value));
  return most;
}

// A NaN difference counts as infinite.
double error_of(std::span<const float> ours, std::span<const float> reference) {
  if (ours.size() != reference.size()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    double difference = std::abs(static_cast<double>(ours[i]) - reference[i]);
    most = difference <= most ? most : std::isnan(difference) ? INFINITY : difference;
  }
  return most / largest(reference);
}

// Of the last rows, where the reference has no others.
double error_of_last(std::span<const float> ours, std::span<const float> reference) {
  if (ours.size() < reference.size()) return INFINITY;
  return error_of(ours.last(reference.size()), reference);
}

// Small pools: the longest prompt and its continuation fit.
EngineConfig config_of(const GoldenCase& golden, const std::string& dtype,
                       const std::string& kernels, const std::string& mla_prefill = "absorbed") {
  return {.model_path = golden.folder(),
          .dtype = dtype,
          .kernels = kernels,
          .threads = 1,
          .mla_prefill = mla_prefill,
          .page_size_tokens = 16,
          .total_tokens_max = 256,
          .running_max = 2,
          .chunked_prefill_tokens = 256};
}

class GoldenModels : public testing::TestWithParam<GoldenCase> {
 protected:
  const GoldenCase& golden() const { return GetParam(); }

  // Hidden states and logits within `bounds` of the reference.
  void compare_tensors(const EngineConfig& config, const GoldenErrors& bounds) {
    std::unique_ptr<Runner> runner = load_runner(config);
    std::vector<TokenId> prompt = reference_.ids("prompt_ids");
    std::vector<int32_t> pages(16);
    std::iota(pages.begin(), pages.end(), 0);
    Batch batch =
        one_span(runner->classes(), prompt, 0, static_cast<int64_t>(prompt.size()), pages);
    std::vector<int> layers(static_cast<size_t>(golden().layers) + 1);
    std::iota(layers.begin(), layers.end(), 0);

    Runner::Hidden hidden = runner->run_hidden(batch, layers);
    std::vector<float> expected = reference_.floats("hidden");
    size_t layer_size = expected.size() / layers.size();
    for (size_t i = 0; i < layers.size(); ++i) {
      auto reference = std::span(expected).subspan(i * layer_size, layer_size);
      EXPECT_LE(error_of_last(hidden.layers[i], reference), bounds.hidden[i]) << "hidden " << i;
    }
    EXPECT_LE(error_of_last(hidden.final, reference_.floats("final")), bounds.final);
    EXPECT_LE(error_of_last(all_logits(*runner, prompt, 256), reference_.floats("logits")),
              bounds.logits);
  }

  // 24 greedy tokens after `prompt`, equal up to the first whose margin is within twice the error
  // of a logit: from there on either continuation would be right.
  void compare_greedy(Engine& engine, std::vector<TokenId> prompt, const std::string& run,
                      double logit_error_max, double logprob_error_max) {
    std::vector<TokenId> ids = reference_.ids(run + "_ids");
    std::vector<float> logprobs = reference_.floats(run + "_logprobs");
    std::vector<float> margins = reference_.floats(run + "_margins");
    Heard heard =
        run_alone(engine, {.prompt = std::move(prompt),
                           .sampling = {.temperature = 0},
                           .options = {.max_new_tokens = static_cast<int64_t>(ids.size())}});
    ASSERT_EQ(heard.output.size(), ids.size());
    EXPECT_EQ(heard.finish, FinishReason::kLength);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (heard.output[i].token != ids[i] && margins[i] <= 2 * logit_error_max) return;
      ASSERT_EQ(heard.output[i].token, ids[i]) << run << ' ' << i << ", margin " << margins[i];
      EXPECT_NEAR(heard.output[i].logprob, logprobs[i], logprob_error_max) << run << ' ' << i;
    }
  }

  void compare_engine(const EngineConfig& config, double logits_bound) {
    std::unique_ptr<Engine> engine = load_engine(config);
    std::vector<TokenId> prompt = reference_.ids("prompt_ids");
    double logit_error_max = logits_bound * largest(reference_.floats("logits"));
    // A log-probability is a logit less a log of a sum of exponentials, each off by the same.
    double logprob_error_max = std::max(kLogprobErrorMaxF32, 2 * logit_error_max);
    Heard scored = run_alone(
        *engine, {.prompt = prompt, .options = {.max_new_tokens = 0, .prompt_logprobs_begin = 0}});
    std::vector<float> ours = scored.prompt_logprobs();
    std::vector<float> expected = reference_.floats("prompt_logprobs");
    ASSERT_EQ(ours.size(), expected.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_NEAR(ours[i], expected[i], logprob_error_max) << "prompt token " << i + 1;
    }
    compare_greedy(*engine, prompt, "greedy", logit_error_max, logprob_error_max);
    compare_greedy(*engine, {prompt[0]}, "single", logit_error_max, logprob_error_max);
  }

  void compare_f32(const std::string& mla_prefill) {
    GoldenErrors bounds{std::vector<double>(static_cast<size_t>(golden().layers) + 1, kErrorMaxF32),
                        kErrorMaxF32, kErrorMaxF32};
    for (const std::string& kernels : all_kernels()) {
      SCOPED_TRACE(kernels);
      EngineConfig config = config_of(golden(), "f32", kernels, mla_prefill);
      compare_tensors(config, bounds);
      compare_engine(config, kErrorMaxF32);
    }
  }

  // The weights are rounded in the reference as well. Beside them we round keys, values and what a
  // kernel table says it rounds of a product's operands; activations, norms, softmax and the
  // residual stream stay f32. transformers in bf16 or f16 rounds all of these, so each of our
  // roundings is one of its own, and its error against f32 bounds ours. What enters the first layer
  // has no error.
  void compare_rounded(const std::string& mla_prefill) {
    for (const std::string& kernels : all_kernels()) {
      SCOPED_TRACE(kernels);
      EngineConfig config = config_of(golden(), "auto", kernels, mla_prefill);
      compare_tensors(config, golden().error_native);
      compare_engine(config, golden().error_native.logits);
    }
  }

  void compare_cuts(const std::string& mla_prefill);

  GoldenReference reference_{GetParam()};
};

// Positions are cut differently into spans, pages and threads; the bits are the same.
void GoldenModels::compare_cuts(const std::string& mla_prefill) {
  std::vector<TokenId> prompt = reference_.ids("prompt_ids");
  for (const std::string& kernels : all_kernels()) {
    EngineConfig config = config_of(golden(), "auto", kernels, mla_prefill);
    std::vector<float> expected = all_logits(*load_runner(config), prompt, 256);
    config.chunked_prefill_tokens = 512;
    for (int page_size : {1, 4, 64}) {
      for (int threads : {1, 2, 3}) {
        config.page_size_tokens = page_size;
        config.threads = threads;
        std::unique_ptr<Runner> runner = load_runner(config);
        for (int64_t chunk : {1, 7, 64, 512}) {
          // One token at a time does little that threads could share, so it runs with each once.
          if (chunk == 1 && page_size != (threads == 1 ? 1 : threads == 2 ? 4 : 64)) continue;
          EXPECT_TRUE(same_bits(all_logits(*runner, prompt, chunk), expected))
              << kernels << ", pages of " << page_size << ", chunks of " << chunk << ", " << threads
              << " threads";
        }
      }
    }
  }
}

using RoundedGoldenModels = GoldenModels;
using ExpandedGoldenModels = GoldenModels;
using ExpandedRoundedGoldenModels = GoldenModels;
TEST_P(GoldenModels, F32MatchesTransformers) {
  compare_f32("absorbed");
}
TEST_P(GoldenModels, LogitsAreTheSameForAnyCut) {
  compare_cuts("absorbed");
}
TEST_P(RoundedGoldenModels, AreNoWorseThanTransformers) {
  compare_rounded("absorbed");
}
TEST_P(ExpandedGoldenModels, F32MatchesTransformers) {
  compare_f32("expanded");
}
TEST_P(ExpandedGoldenModels, LogitsAreTheSameForAnyCut) {
  compare_cuts("expanded");
}
TEST_P(ExpandedRoundedGoldenModels, AreNoWorseThanTransformers) {
  compare_rounded("expanded");
}

bool is_rounded(const GoldenCase& golden) {
  return golden.dtype != "float32";
}

// Every test lists the cases of all, so this must not make up a checkpoint's weights.
bool has_latents(const GoldenCase& golden) {
  return golden.config().contains("kv_lora_rank");
}

std::vector<GoldenCase> cases_that(std::initializer_list<bool (*)(const GoldenCase&)> conditions) {
  std::vector<GoldenCase> cases = golden_cases();
  for (auto holds : conditions) std::erase_if(cases, std::not_fn(holds));
  return cases;
}

std::string test_name(const testing::TestParamInfo<GoldenCase>& test) {
  std::string name = test.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModels, testing::ValuesIn(golden_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(All, RoundedGoldenModels, testing::ValuesIn(cases_that({is_rounded})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, ExpandedGoldenModels, testing::ValuesIn(cases_that({has_latents})),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, ExpandedRoundedGoldenModels,
                         testing::ValuesIn(cases_that({has_latents, is_rounded})), test_name);

}  // namespace
}  // namespace banyan::test::models_test
