// The engine's tokens and log-probabilities against direct computations from the model's logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "support/drive.h"
#include "support/shared.h"
#include "support/stripes.h"

namespace banyan::test::engine_sampling_test {
namespace {

constexpr int64_t kVocabulary = 131;

EngineConfig small_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 128,
          .running_max = 2,
          .chunked_prefill_tokens = 64};
}

const std::vector<TokenId> kPrompt = {5, 9, 77, 5, 130, 0, 42, 42};

// What comes after a sequence, computed from scratch.
class Naive {
 public:
  std::vector<float> next_logits(std::span<const TokenId> tokens) {
    std::vector<float> all = all_logits(*runner_, tokens, 64);
    return {all.end() - kVocabulary, all.end()};
  }

  static std::vector<double> log_softmax(std::span<const float> logits) {
    double sum = 0, most = *std::ranges::max_element(logits);
    for (float x : logits) sum += std::exp(x - most);
    std::vector<double> result;
    for (float x : logits) result.push_back(x - most - std::log(sum));
    return result;
  }

 private:
  std::unique_ptr<Runner> runner_ = load_runner(small_config());
};

TokenId argmax(std::span<const float> values) {
  return static_cast<TokenId>(std::ranges::max_element(values) - values.begin());
}

class EngineSampling : public testing::Test {
 protected:
  std::unique_ptr<Engine> engine_ = load_engine(small_config());
  Naive naive_;
};

TEST_F(EngineSampling, LogprobsAreTheLogSoftmaxOfTheModel) {
  // Strong sampling changes must not show in what is reported.
  GenerateRequest request{
      .prompt = kPrompt,
      .sampling = {.temperature = 2,
                   .top_k = 40,
                   .repetition_penalty = 3,
                   .logit_bias = {{3, 5.f}},
                   .seed = 11},
      .options = {.max_new_tokens = 12, .top_logprobs = 7, .prompt_logprobs_begin = 2}};
  Heard heard = run_alone(*engine_, request);
  ASSERT_EQ(heard.prompt.size(), kPrompt.size() - 2);
  ASSERT_EQ(heard.output.size(), 12u);
  std::vector<Heard::Token> all = heard.prompt;
  all.insert(all.end(), heard.output.begin(), heard.output.end());
  std::vector<TokenId> tokens(kPrompt.begin(), kPrompt.begin() + 2);
  for (const Heard::Token& said : all) {
    ASSERT_EQ(said.position, static_cast<int64_t>(tokens.size()));
    std::vector<double> expected = Naive::log_softmax(naive_.next_logits(tokens));
    EXPECT_NEAR(said.logprob, expected[said.token], 2e-5);
    std::vector<TokenId> order(kVocabulary);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return expected[a] > expected[b]; });
    ASSERT_EQ(said.top.size(), 7u);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(said.top[i].token, order[i]);
      EXPECT_NEAR(said.top[i].logprob, expected[order[i]], 2e-5);
    }
    tokens.push_back(said.token);
  }
}

TEST_F(EngineSampling, PenaltiesAndBiasFollowTheirFormulas) {
  SamplingParams sampling{.temperature = 0,
                          .frequency_penalty = 1.5f,
                          .presence_penalty = 0.75f,
                          .repetition_penalty = 1.6f,
                          .logit_bias = {{42, 3.f}, {7, -2.f}, {42, 1.f}}};
  Heard heard = run_alone(
      *engine_, {.prompt = kPrompt, .sampling = sampling, .options = {.max_new_tokens = 40}});
  std::vector<TokenId> tokens = kPrompt;
  for (const Heard::Token& said : heard.output) {
    std::vector<float> logits = naive_.next_logits(tokens);
    for (TokenId t = 0; t < kVocabulary; ++t) {
      auto times = std::count(tokens.begin() + kPrompt.size(), tokens.end(), t);
      float& x = logits[t];
      if (std::ranges::count(tokens, t) > 0) x = x > 0 ? x / 1.6f : x * 1.6f;
      if (times > 0) x -= 1.5f * static_cast<float>(times) + 0.75f;
      if (t == 42) x += 4;
      if (t == 7) x -= 2;
    }
    ASSERT_EQ(said.token, argmax(logits)) << "at " << tokens.size();
    tokens.push_back(said.token);
  }
  EXPECT_GT((std::set<TokenId>(tokens.begin(), tokens.end()).size()), 20u) << "penalties bite";
}

TEST_F(EngineSampling, PenaltiesCountTheLastTokensAlone) {
  constexpr int kWindow = 7;
  SamplingParams sampling{.temperature = 0,
                          .frequency_penalty = 1.5f,
                          .repetition_penalty = 1.6f,
                          .repeat_last_n = kWindow,
                          .logit_bias = {}};
  GenerateRequest request{
      .prompt = kPrompt, .sampling = sampling, .options = {.max_new_tokens = 30}};
  std::vector<TokenId> tokens = kPrompt;
  for (const Heard::Token& said : run_alone(*engine_, request).output) {
    std::vector<float> logits = naive_.next_logits(tokens);
    size_t first = tokens.size() - std::min<size_t>(tokens.size(), kWindow);
    for (TokenId t = 0; t < kVocabulary; ++t) {
      int times = 0, outputs = 0;
      for (size_t i = first; i < tokens.size(); ++i) {
        times += tokens[i] == t ? 1 : 0;
        outputs += tokens[i] == t && i >= kPrompt.size() ? 1 : 0;
      }
      float& x = logits[t];
      if (times > 0) x = x > 0 ? x / 1.6f : x * 1.6f;
      x -= 1.5f * static_cast<float>(outputs);
    }
    ASSERT_EQ(said.token, argmax(logits)) << "at " << tokens.size();
    tokens.push_back(said.token);
  }
  std::vector<TokenId> windowed = run_alone(*engine_, request).output_ids();
  request.sampling.repeat_last_n = -1;
  EXPECT_NE(run_alone(*engine_, request).output_ids(), windowed);
  request.sampling.repeat_last_n = 0;
  std::vector<TokenId> none = run_alone(*engine_, request).output_ids();
  request.sampling = {.temperature = 0};
  EXPECT_EQ(run_alone(*engine_, request).output_ids(), none);
}

TEST_F(EngineSampling, PenaltiesOfOneRequestDoNotReachAnother) {
  GenerateRequest plain{
      .prompt = kPrompt, .sampling = {.temperature = 0}, .options = {.max_new_tokens = 20}};
  GenerateRequest harsh = plain;
  harsh.sampling.frequency_penalty = 2;
  Heard plain_alone = run_alone(*engine_, plain), harsh_alone = run_alone(*engine_, harsh);
  Heard plain_beside, harsh_beside;
  ASSERT_TRUE(engine_->submit(harsh, hear_into(harsh_beside)));
  ASSERT_TRUE(engine_->submit(plain, hear_into(plain_beside)));
  while (engine_->step()) {
  }
  EXPECT_EQ(plain_beside.output_ids(), plain_alone.output_ids());
  EXPECT_EQ(harsh_beside.output_ids(), harsh_alone.output_ids());
  EXPECT_NE(plain_alone.output_ids(), harsh_alone.output_ids());
}

TEST_F(EngineSampling, SeedAndSampleIndexDecideTheDraws) {
  GenerateRequest request{.prompt = kPrompt, .sampling = {.temperature = 1.5f, .seed = 3}};
  request.options.max_new_tokens = 16;
  std::vector<TokenId> first = run_alone(*engine_, request).output_ids();
  EXPECT_EQ(run_alone(*engine_, request).output_ids(), first);
  request.sampling.sample_index = 1;
  EXPECT_NE(run_alone(*engine_, request).output_ids(), first);
  request.sampling = {.temperature = 1.5f, .seed = 4};
  EXPECT_NE(run_alone(*engine_, request).output_ids(), first);
}

TEST_F(EngineSampling, ConstraintsAreObeyed) {
  for (float temperature : {0.f, 1.f, 50.f}) {
    for (int modulus : {1, 2, 7, 66}) {
      auto constraint = std::make_shared<Stripes>(modulus);
      Heard heard, free;
      ASSERT_TRUE(engine_->submit({.prompt = kPrompt,
                                   .sampling = {.temperature = temperature, .seed = 1},
                                   .options = {.max_new_tokens = 20},
                                   .constraint = constraint},
                                  hear_into(heard)));
      ASSERT_TRUE(
          engine_->submit({.prompt = kPrompt, .options = {.max_new_tokens = 20}}, hear_into(free)));
      while (engine_->step()) {
      }
      ASSERT_EQ(heard.output.size(), 20u);
      EXPECT_EQ(constraint->accepted, heard.output_ids());
      for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(heard.output[static_cast<size_t>(i)].token % modulus, i % modulus);
      }
    }
  }
}

class AllowsNothing final : public TokenConstraint {
 public:
  void fill_mask(std::span<uint32_t>) override {}
  void accept(TokenId) override { ADD_FAILURE() << "nothing was allowed"; }
  std::span<const TokenId> draft_tokens() override { return {}; }
  void rollback(int) override {}
};

TEST_F(EngineSampling, AConstraintThatAllowsNothingEndsItsRequestAlone) {
  for (float temperature : {0.f, 1.f}) {
    Heard heard, free;
    ASSERT_TRUE(engine_->submit({.prompt = kPrompt,
                                 .sampling = {.temperature = temperature},
                                 .options = {.max_new_tokens = 5},
                                 .constraint = std::make_shared<AllowsNothing>()},
                                hear_into(heard)));
    ASSERT_TRUE(
        engine_->submit({.prompt = kPrompt, .options = {.max_new_tokens = 5}}, hear_into(free)));
    while (engine_->step()) {
    }
    EXPECT_EQ(heard.finish, FinishReason::kError);
    EXPECT_TRUE(heard.output.empty());
    EXPECT_EQ(free.output.size(), 5u);
  }
}

TEST_F(EngineSampling, GreedyUnderAConstraintIsTheBestAllowedToken) {
  auto constraint = std::make_shared<Stripes>(5);
  Heard heard = run_alone(*engine_, {.prompt = kPrompt,
                                     .sampling = {.temperature = 0},
                                     .options = {.max_new_tokens = 15},
                                     .constraint = constraint});
  std::vector<TokenId> tokens = kPrompt;
  for (size_t i = 0; i < heard.output.size(); ++i) {
    std::vector<float> logits = naive_.next_logits(tokens);
    for (size_t t = 0; t < logits.size(); ++t) {
      if (t % 5 != i % 5) logits[t] = -INFINITY;
    }
    ASSERT_EQ(heard.output[i].token, argmax(logits));
    tokens.push_back(heard.output[i].token);
  }
}

}  // namespace
}  // namespace banyan::test::engine_sampling_test
